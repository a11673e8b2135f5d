//! Measures Antiphon and other libraries, and writes RESULTS.md.
//!
//! Servers have one core and their load another. Servers take turns in every round, every reply is
//! checked, and every figure of the report comes from `results.json`.

mod allocations;
mod build;
mod clients;
mod cores;
mod cpu;
mod dispatch;
mod goals;
mod idle;
mod load;
mod machine;
mod options;
mod parser;
mod picture;
mod place;
mod report;
mod results;
mod server;
mod spread;
mod turns;
mod workload;

use std::error::Error;
use std::process::ExitCode;

use options::Options;
use place::Place;
use results::{Dated, Results};

/// The failure as text.
type Fault = Box<dyn Error>;

fn main() -> ExitCode {
    match run() {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            eprintln!("bench: wrong or missing replies:\n  {}", faults.join("\n  "));
            ExitCode::FAILURE
        }
        Err(fault) => {
            eprintln!("bench: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Vec<String>, Fault> {
    let options = Options::from_args()?;
    if !names().iter().any(|name| options.wants(name)) {
        return Err("--only names nothing; see bench/README.md".into());
    }
    let place = Place::find()?;
    build::all(&place)?;
    let mut results = Results::read(&place)?;
    results.machine = machine::Machine::look(&place)?;
    measure(&place, &options, &mut results)?;
    let report = report::write(&results, &std::fs::read_to_string(place.bench.join("NOTES.md"))?);
    if options.quick {
        println!("{report}");
    } else {
        results.write(&place)?;
        std::fs::write(place.bench.join("RESULTS.md"), report)?;
        std::fs::write(place.bench.join("ratios.svg"), picture::ratios(&results))?;
        std::fs::write(place.bench.join("linear.svg"), picture::linear(&results))?;
    }
    Ok(results.faults())
}

/// All names for `--only`.
fn names() -> Vec<String> {
    let others = ["idle", "clients", "dispatch", "allocations", "parsers"].map(str::to_owned);
    workload::all().into_iter().map(|load| load.name).chain(others).collect()
}

fn measure(place: &Place, options: &Options, results: &mut Results) -> Result<(), Fault> {
    loads(place, options, results)?;
    let take = |name: &str| {
        let wanted = options.wants(name);
        if wanted {
            eprintln!("measuring {name}");
        }
        wanted
    };
    if take("idle") {
        results.idle = Some(dated(idle::measure(place, options)?)?);
    }
    if take("clients") {
        results.clients = Some(dated(clients::measure(place, options)?)?);
    }
    if take("dispatch") {
        results.dispatch = Some(dated(dispatch::measure(place, options)?)?);
    }
    if take("allocations") {
        results.allocations = Some(dated(allocations::measure(place, options)?)?);
    }
    if take("parsers") {
        results.parsers = Some(dated(parser::measure(place, options)?)?);
    }
    if options.builds {
        results.builds = Some(dated(build::clean(place)?)?);
    }
    Ok(())
}

fn loads(place: &Place, options: &Options, results: &mut Results) -> Result<(), Fault> {
    let workloads = workload::all().into_iter().filter(|load| options.wants(&load.name));
    let servers = server::start_all(place)?;
    for workload in workloads {
        eprintln!("measuring {}", workload.name);
        let figures = load::run(place, options, &servers, &workload)?;
        results.loads.insert(workload.name, dated(figures)?);
    }
    Ok(())
}

fn dated<T>(value: T) -> Result<Dated<T>, Fault> {
    Ok(Dated { date: machine::today()?, value })
}
