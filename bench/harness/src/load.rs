//! One workload with `antiphon bench`, which checks every reply.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::cpu::Cpu;
use crate::options::Options;
use crate::place::{LOAD_CORE, Place, SERVER_CORE, on_core};
use crate::server::Server;
use crate::spread::Spread;
use crate::turns;
use crate::workload::{Call, Workload};

/// The length of the warm-up as a part of a round.
const WARM_UP: f64 = 0.3;

/// The result of one server: medians of its rounds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) peer: String,
    /// Each entry of a batch is a call.
    pub(crate) calls_per_second: f64,
    pub(crate) slowest: f64,
    pub(crate) fastest: f64,
    /// Measurements without a shared cache, which do not count.
    pub(crate) apart: Option<f64>,
    /// Measurements without a shared cache count, since there are no others.
    pub(crate) all_count: bool,
    /// Microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// CPU time of the server's process per call, unless the process is new.
    pub(crate) cpu: Option<Cpu>,
    /// Wrong or missing replies: the figures are then invalid.
    pub(crate) fault: Option<String>,
}

pub(crate) fn run(
    place: &Place,
    options: &Options,
    servers: &BTreeMap<&'static str, Server>,
    workload: &Workload,
) -> Result<Vec<Figure>, Fault> {
    let mut commands = BTreeMap::new();
    for peer in &workload.peers {
        let mut command = on_core(LOAD_CORE, &place.antiphon);
        let endpoint = endpoint(place, servers, peer, workload.wire)?;
        command.args(["bench", "--format", "json", &endpoint, method(workload)]);
        shape(&mut command, options, workload);
        call(&mut command, &place.scratch, workload)?;
        commands.insert(*peer, command);
    }
    let turns = turns::take(options, &workload.peers, |peer| {
        let command = commands.get_mut(peer).ok_or("every peer has a command")?;
        round(command, servers.get(peer))
    })?;
    let figure = |peer: &&'static str| {
        let apart = turns.apart.get(peer).map_or(&[][..], Vec::as_slice);
        let figure = Figure::of(peer, turns.counted.get(peer)?, apart);
        Some(Figure { all_count: turns.all_count, ..figure })
    };
    Ok(workload.peers.iter().filter_map(figure).collect())
}

/// Starts the demonstration server of the binary on stdio; other endpoints are used as they are.
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
    command.args(["--rounds", "1"]);
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

/// One measurement of one server.
struct Round {
    speed: f64,
    p50: f64,
    p99: f64,
    cpu: Option<Cpu>,
    /// Errors by kind.
    errors: BTreeMap<String, u64>,
}

/// Runs `antiphon bench`, which fails on wrong replies and reports them.
fn round(command: &mut Command, server: Option<&Server>) -> Result<Round, Fault> {
    #[derive(Deserialize)]
    struct Report {
        targets: [Target; 1],
    }
    #[derive(Deserialize)]
    struct Target {
        calls_per_second: f64,
        latency_us: Latency,
        errors: BTreeMap<String, u64>,
        rounds: [Counted; 1],
    }
    #[derive(Deserialize)]
    struct Latency {
        p50: f64,
        p99: f64,
    }
    #[derive(Deserialize)]
    struct Counted {
        calls: u64,
    }
    let before = server.and_then(Server::cpu);
    let output = command.output()?;
    let after = server.and_then(Server::cpu);
    let report: Report = serde_json::from_slice(&output.stdout).map_err(|error| {
        format!("{command:?}: {error}\n{}", String::from_utf8_lossy(&output.stderr))
    })?;
    let [Target { calls_per_second, latency_us, errors, rounds: [counted] }] = report.targets;
    // The output excludes the warm-up, which makes as many calls per time.
    let calls = counted.calls.max(1) as f64 * (1.0 + WARM_UP);
    Ok(Round {
        speed: calls_per_second,
        p50: latency_us.p50,
        p99: latency_us.p99,
        cpu: after.zip(before).map(|(after, before)| (after - before) / calls),
        errors,
    })
}

impl Figure {
    fn of(peer: &str, rounds: &[Round], apart: &[Round]) -> Self {
        let speed = Spread::of(rounds.iter().map(|round| round.speed).collect());
        let cpu: Option<Vec<_>> = rounds.iter().map(|round| round.cpu).collect();
        Self {
            peer: peer.to_owned(),
            calls_per_second: speed.median,
            slowest: speed.min,
            fastest: speed.max,
            apart: (!apart.is_empty()).then(|| median(apart, |round| round.speed)),
            all_count: false,
            p50: median(rounds, |round| round.p50),
            p99: median(rounds, |round| round.p99),
            cpu: cpu.map(|cpu| Cpu {
                user: median(&cpu, |cpu| cpu.user),
                system: median(&cpu, |cpu| cpu.system),
            }),
            fault: fault(rounds.iter().chain(apart)),
        }
    }
}

fn median<T>(of: &[T], value: impl Fn(&T) -> f64) -> f64 {
    Spread::of(of.iter().map(value).collect()).median
}

fn fault<'a>(rounds: impl Iterator<Item = &'a Round>) -> Option<String> {
    let mut faults = BTreeMap::<&str, u64>::new();
    for round in rounds {
        for (kind, count) in &round.errors {
            *faults.entry(kind).or_default() += count;
        }
        if round.speed == 0.0 {
            *faults.entry("rounds without a reply").or_default() += 1;
        }
    }
    let faults: Vec<_> = faults.iter().map(|(kind, count)| format!("{count} of {kind}")).collect();
    (!faults.is_empty()).then(|| faults.join(", "))
}
