//! Allocations per call of a whole server, queried before and after the calls.

use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::options::Options;
use crate::place::{Place, output};
use crate::server::Server;

/// Allocations per call, or per batch entry.
#[derive(Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) peer: String,
    pub(crate) wire: String,
    pub(crate) is_batch: bool,
    pub(crate) allocations: f64,
}

pub(crate) fn measure(place: &Place, options: &Options) -> Result<Vec<Count>, Fault> {
    let mut counts = Vec::new();
    for peer in ["jsonrpsee", "antiphon"] {
        let server = Server::start(place, &format!("{peer}-counted"))?;
        for wire in
            ["ws", "tcp", "http"].iter().filter(|wire| server.endpoints.contains_key(**wire))
        {
            for is_batch in [false, true] {
                let endpoint = server.endpoint(wire)?;
                let allocations = count(place, options, endpoint, is_batch)?;
                let (peer, wire) = (peer.to_owned(), (*wire).to_owned());
                counts.push(Count { peer, wire, is_batch, allocations });
            }
        }
    }
    Ok(counts)
}

/// Enough calls to make one-time work, such as connecting, negligible.
fn count(place: &Place, options: &Options, endpoint: &str, is_batch: bool) -> Result<f64, Fault> {
    let calls = if options.quick { 2_000 } else { 100_000 };
    let total = || -> Result<f64, Fault> {
        let asked = output(Command::new(&place.antiphon).args(["call", endpoint, "allocations"]))?;
        Ok(asked.trim().parse()?)
    };
    let before = total()?;
    let mut command = Command::new(&place.antiphon);
    command.args(["bench", endpoint, "say_hello", "--expect", r#""hello""#]);
    command.args(["-c", "1", "-n", &calls.to_string()]);
    // HTTP calls are not pipelined here.
    let in_flight = if is_batch || endpoint.starts_with("http") { "1" } else { "16" };
    command.args(["-f", in_flight]).args(is_batch.then_some(["-b", "100"]).into_iter().flatten());
    output(&mut command)?;
    Ok((total()? - before) / f64::from(calls))
}
