//! The servers under load, each a process on the servers' core.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::Fault;
use crate::cpu::Cpu;
use crate::place::{Place, SERVER_CORE, on_core};

pub(crate) const PEERS: [&str; 7] =
    ["jsonrpsee", "antiphon", "ajj", "axum", "hyper", "plain", "jayson"];

pub(crate) struct Server {
    child: Child,
    /// Its endpoints by wire: `http`, `ws`, `tcp`, `unix`.
    pub(crate) endpoints: BTreeMap<String, String>,
}

impl Server {
    pub(crate) fn start(place: &Place, peer: &str) -> Result<Self, Fault> {
        let mut child = command(place, peer).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let endpoints = serde_json::from_str(&line);
        let endpoints = endpoints.map_err(|_| format!("{peer} did not start: {line}"))?;
        Ok(Self { child, endpoints })
    }

    pub(crate) fn endpoint(&self, wire: &str) -> Result<&str, Fault> {
        Ok(self.endpoints.get(wire).ok_or_else(|| format!("it does not listen on {wire}"))?)
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The CPU time used so far.
    pub(crate) fn cpu(&self) -> Option<Cpu> {
        Cpu::of(self.process())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `taskset` replaces itself with the command, so the child is the server itself.
fn command(place: &Place, peer: &str) -> Command {
    if peer == "jayson" {
        let mut command = on_core(SERVER_CORE, "node".as_ref());
        command.arg(place.bench.join("peers/jayson/server.mjs"));
        return command;
    }
    let mut command = place.pinned(SERVER_CORE, &format!("bench-{peer}"));
    command.arg(place.scratch.join(format!("{peer}.sock")));
    command
}

/// Starts all servers at once: a server without load does not run.
pub(crate) fn start_all(place: &Place) -> Result<BTreeMap<&'static str, Server>, Fault> {
    PEERS.iter().map(|peer| Ok((*peer, Server::start(place, peer)?))).collect()
}
