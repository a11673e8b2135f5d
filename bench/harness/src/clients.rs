//! Calls per second of each client, 64 in flight, against the same server: the plain loop, which is
//! faster than all of them and belongs to none of the libraries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::options::Options;
use crate::place::{LOAD_CORE, Place, output};
use crate::server::Server;
use crate::spread::Spread;
use crate::turns;

const IN_FLIGHT: &str = "64";
/// Each client with its wire; over WebSocket there is one connection.
const CLIENTS: [(&str, &str); 6] = [
    ("ws", "jsonrpsee"),
    ("ws", "antiphon"),
    ("http", "jsonrpsee"),
    ("http", "antiphon"),
    ("http", "hyper"),
    ("http", "hyper-conn"),
];

#[derive(Serialize, Deserialize)]
pub(crate) struct Clients {
    /// Calls per second by wire and client.
    pub(crate) speeds: BTreeMap<String, BTreeMap<String, Spread>>,
    /// Measurements without a shared cache count, since there are no others.
    pub(crate) all_count: bool,
}

pub(crate) fn measure(place: &Place, options: &Options) -> Result<Clients, Fault> {
    let server = Server::start(place, "plain")?;
    let turns = turns::take(options, &CLIENTS, |(wire, client)| {
        one(place, options, server.endpoint(wire)?, client)
    })?;
    let mut speeds = BTreeMap::<_, BTreeMap<_, _>>::new();
    for ((wire, client), measured) in turns.counted {
        let of_wire = speeds.entry(wire.to_owned()).or_default();
        of_wire.insert(client.to_owned(), Spread::of(measured));
    }
    Ok(Clients { speeds, all_count: turns.all_count })
}

fn one(place: &Place, options: &Options, endpoint: &str, client: &str) -> Result<f64, Fault> {
    #[derive(Serialize, Deserialize)]
    struct Printed {
        calls_per_second: f64,
    }
    let seconds = options.seconds(1.0).to_string();
    let mut command = place.pinned(LOAD_CORE, &format!("client-{client}"));
    let printed = output(command.args([endpoint, IN_FLIGHT, &seconds]))?;
    Ok(serde_json::from_str::<Printed>(&printed)?.calls_per_second)
}
