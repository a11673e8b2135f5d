//! The cost of a call inside a library, without a socket.
//!
//! callgrind counts instructions, as the difference between two runs, which excludes the start-up.
//! A counting allocator counts allocations. Time is measured in interleaved rounds.

use std::collections::BTreeMap;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::options::Options;
use crate::place::{LOAD_CORE, Place, output};
use crate::spread::Spread;

pub(crate) const CASES: [&str; 3] = ["hello", "add", "batch"];
pub(crate) const ENGINES: [&str; 8] = [
    "jsonrpsee-http",
    "antiphon-http",
    "http",
    "hand",
    "jsonrpsee-raw",
    "antiphon-text",
    "jsonrpsee-call",
    "antiphon-memory",
];

/// The cost of one call, or of one whole batch.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) instructions: f64,
    pub(crate) nanoseconds: Spread,
    pub(crate) allocations: f64,
}

/// By case and engine.
pub(crate) type Dispatch = BTreeMap<String, BTreeMap<String, Cost>>;

pub(crate) fn measure(place: &Place, options: &Options) -> Result<Dispatch, Fault> {
    let mut dispatch = Dispatch::new();
    for case in CASES {
        let mut times = times(place, options, case)?;
        let mut costs = BTreeMap::new();
        for engine in engines(case) {
            let cost = Cost {
                instructions: instructions(place, engine, case)?,
                nanoseconds: Spread::of(times.remove(engine).unwrap_or_default()),
                allocations: run(place, "dispatch-counted", engine, case, short(case))?.allocations,
            };
            costs.insert(engine.to_owned(), cost);
        }
        dispatch.insert(case.to_owned(), costs);
    }
    Ok(dispatch)
}

/// A module of jsonrpsee does not support batches.
fn engines(case: &str) -> impl Iterator<Item = &'static str> {
    let takes_no_batch = |engine: &str| ["jsonrpsee-raw", "jsonrpsee-call"].contains(&engine);
    let is_batch = case == "batch";
    ENGINES.into_iter().filter(move |engine| !is_batch || !takes_no_batch(engine))
}

/// Enough calls for a count.
fn short(case: &str) -> usize {
    if case == "batch" { 50 } else { 2_000 }
}

fn times(
    place: &Place,
    options: &Options,
    case: &str,
) -> Result<BTreeMap<&'static str, Vec<f64>>, Fault> {
    let mut times: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for _ in 0..options.rounds() {
        for engine in engines(case) {
            let cost = run(place, "dispatch", engine, case, 40 * short(case))?;
            times.entry(engine).or_default().push(cost.nanoseconds);
        }
    }
    Ok(times)
}

struct Run {
    nanoseconds: f64,
    allocations: f64,
}

fn run(place: &Place, binary: &str, engine: &str, case: &str, calls: usize) -> Result<Run, Fault> {
    #[derive(Deserialize)]
    struct Printed {
        nanoseconds: f64,
        allocations: f64,
    }
    let mut command = place.pinned(LOAD_CORE, binary);
    let printed = output(command.args([engine, case, &calls.to_string()]))?;
    let Printed { nanoseconds, allocations } = serde_json::from_str(&printed)?;
    let a_call = |total: f64| total / calls as f64;
    Ok(Run { nanoseconds: a_call(nanoseconds), allocations: a_call(allocations) })
}

fn instructions(place: &Place, engine: &str, case: &str) -> Result<f64, Fault> {
    let calls = short(case);
    let once = collected(place, engine, case, calls)?;
    let twice = collected(place, engine, case, 2 * calls)?;
    Ok((twice - once) / calls as f64)
}

/// All instructions of a run.
fn collected(place: &Place, engine: &str, case: &str, calls: usize) -> Result<f64, Fault> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(place.binary("dispatch")).args([engine, case, &calls.to_string()]);
    let stderr = String::from_utf8(command.output()?.stderr)?;
    let line = stderr.lines().find_map(|line| line.split_once("Collected :"));
    let (_, count) = line.ok_or_else(|| format!("callgrind says nothing:\n{stderr}"))?;
    Ok(count.trim().parse()?)
}
