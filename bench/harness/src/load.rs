//! One workload, by `antiphon bench`, which checks every reply.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::cpu::Cpu;
use crate::options::Options;
use crate::place::{LOAD_CORE, Place, SERVER_CORE, on_core};
use crate::server::Server;
use crate::workload::{Call, Workload};

/// How long the warm-up is, as a part of a round.
const WARM_UP: f64 = 0.3;

/// How one peer did.
#[derive(Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) peer: String,
    /// The median of its rounds; each entry of a batch is a call.
    pub(crate) calls_per_second: f64,
    pub(crate) slowest: f64,
    pub(crate) fastest: f64,
    /// Microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// What the server's process spent on a call, where there is one that was not just started.
    pub(crate) cpu: Option<Cpu>,
    /// Wrong or missing replies: the figures mean nothing then.
    pub(crate) fault: Option<String>,
}

pub(crate) fn run(
    place: &Place,
    options: &Options,
    servers: &BTreeMap<&'static str, Server>,
    workload: &Workload,
) -> Result<Vec<Figure>, Fault> {
    let mut command = on_core(LOAD_CORE, &place.antiphon);
    command.arg("bench").args(["--format", "json"]);
    for (nth, peer) in workload.peers.iter().enumerate() {
        let endpoint = endpoint(place, servers, peer, workload.wire)?;
        match nth {
            0 => command.args(["--name", peer, &endpoint, method(workload)]),
            _ => command.args(["--vs", &format!("{peer}={endpoint}")]),
        };
    }
    shape(&mut command, options, workload);
    call(&mut command, &place.scratch, workload)?;
    let spent = |peer: &str| servers.get(peer).and_then(Server::cpu);
    let before: BTreeMap<_, _> = workload.peers.iter().map(|peer| (*peer, spent(peer))).collect();
    let mut figures = figures(&mut command)?;
    for (figure, calls) in &mut figures {
        // Calls of the warm-up are not told, and are as many in as much time.
        let calls = *calls as f64 * (1.0 + WARM_UP);
        let before = before.get(&*figure.peer).copied().flatten();
        figure.cpu =
            spent(&figure.peer).zip(before).map(|(after, before)| (after - before) / calls);
    }
    Ok(figures.into_iter().map(|(figure, _)| figure).collect())
}

/// The demonstration server of the binary on stdio; the others as they say.
fn endpoint(
    place: &Place,
    servers: &BTreeMap<&'static str, Server>,
    peer: &str,
    wire: &str,
) -> Result<String, Fault> {
    if wire == "stdio" {
        let antiphon = place.antiphon.display();
        return Ok(format!("exec:taskset -c {SERVER_CORE} '{antiphon}' serve stdio:"));
    }
    let server = servers.get(peer).ok_or_else(|| format!("there is no {peer}"))?;
    Ok(server.endpoint(wire)?.to_owned())
}

fn method(workload: &Workload) -> &'static str {
    match workload.call {
        Call::Hello if workload.wire == "stdio" => "get_data",
        Call::Hello => "say_hello",
        Call::Echo(_) => "echo",
        Call::Sleep(_) => "sleep",
    }
}

fn shape(command: &mut Command, options: &Options, workload: &Workload) {
    let seconds = options.seconds(workload.seconds);
    command.args(["-c", &workload.connections.to_string()]);
    command.args(["-f", &workload.in_flight.to_string()]);
    command.args(["-t", &format!("{}ms", seconds * 1e3)]);
    command.args(["--warm-up", &format!("{}ms", seconds * WARM_UP * 1e3)]);
    command.args(["--rounds", &options.rounds().to_string()]);
    if let Some(batch) = workload.batch {
        command.args(["-b", &batch.to_string()]);
    }
}

fn call(command: &mut Command, scratch: &Path, workload: &Workload) -> Result<(), Fault> {
    match workload.call {
        Call::Hello if workload.wire == "stdio" => command.args(["--expect", r#"["hello",5]"#]),
        Call::Hello => command.args(["--expect", r#""hello""#]),
        Call::Sleep(ms) => command.args(["-d", &format!("[{ms}]"), "--expect", &ms.to_string()]),
        Call::Echo(size) => {
            let file = format!("@{}", text(scratch, size)?.display());
            command.args(["-d", &file, "--expect", &file])
        }
    };
    Ok(())
}

/// A file with an Array of one String of that many bytes.
fn text(scratch: &Path, size: usize) -> Result<PathBuf, Fault> {
    let file = scratch.join(format!("echo-{size}.json"));
    std::fs::write(&file, format!(r#"["{}"]"#, "x".repeat(size)))?;
    Ok(file)
}

/// The document of `antiphon bench`, with the calls that were counted. It fails where replies are
/// wrong, and tells which.
fn figures(command: &mut Command) -> Result<Vec<(Figure, u64)>, Fault> {
    #[derive(Deserialize)]
    struct Report {
        targets: Vec<Target>,
    }
    let output = command.output()?;
    let report: Report = serde_json::from_slice(&output.stdout).map_err(|error| {
        format!("{command:?}: {error}\n{}", String::from_utf8_lossy(&output.stderr))
    })?;
    let calls = |target: &Target| target.rounds.iter().map(|round| round.calls).sum();
    let figures = report.targets.into_iter().map(|target| (calls(&target), target));
    Ok(figures.map(|(calls, target)| (Figure::from(target), calls)).collect())
}

#[derive(Deserialize)]
struct Target {
    name: String,
    calls_per_second: f64,
    spread: Spread,
    latency_us: Latency,
    errors: BTreeMap<String, u64>,
    rounds: Vec<Round>,
}

#[derive(Deserialize)]
struct Round {
    calls: u64,
}

#[derive(Deserialize)]
struct Spread {
    min: f64,
    max: f64,
}

#[derive(Deserialize)]
struct Latency {
    p50: f64,
    p99: f64,
}

impl From<Target> for Figure {
    fn from(target: Target) -> Self {
        let mut faults: Vec<_> =
            target.errors.iter().map(|(kind, count)| format!("{count} of {kind}")).collect();
        if target.calls_per_second == 0.0 {
            faults.push("no replies".to_owned());
        }
        Self {
            peer: target.name,
            calls_per_second: target.calls_per_second,
            slowest: target.spread.min,
            fastest: target.spread.max,
            p50: target.latency_us.p50,
            p99: target.latency_us.p99,
            cpu: None,
            fault: (!faults.is_empty()).then(|| faults.join(", ")),
        }
    }
}
