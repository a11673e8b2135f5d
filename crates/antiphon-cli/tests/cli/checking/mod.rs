//! `antiphon check` and `antiphon check-client` as commands.

mod bitcoin_core;
mod clients;
mod endless;
mod foreign;
mod language_servers;
mod late;
mod mcp;
mod mutants;
mod own;
mod processes;
mod reports;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Ended, antiphon, run_within};

/// Runs `antiphon check` with these arguments.
fn check(args: &[&str]) -> Ended {
    // A run has a budget of its own. This limit is for one that hangs.
    run_within(antiphon().arg("check").args(args), b"", Duration::from_secs(240))
}

/// Runs the command, and parses its report.
fn judged(args: &[&str]) -> Judged {
    let ended = check(&[args, &["--format", "json"]].concat());
    let report = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{args:?} gives no report ({error}): {ended:?}"));
    Judged { report, code: ended.code }
}

/// A run of the checker, with the name of what it checks.
type NamedRun = (&'static str, fn());

/// The number of runs at once.
const RUNS: usize = 8;

/// Does these runs side by side, since each of them waits for most of its time, and names those that fail. If the
/// environment variable `MUTANT` is set, only the runs whose names contain it.
fn side_by_side<R: Fn() + Sync>(runs: &[(&'static str, R)]) {
    let only = std::env::var("MUTANT").unwrap_or_default();
    let left = Mutex::new(runs.iter().filter(|(name, _)| name.contains(&only)));
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some((name, run)) = left.lock().unwrap().next() else { return };
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                failed.lock().unwrap().push(*name);
            }
        }
    };
    thread::scope(|scope| (0..RUNS).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "these fail, as reported above: {failed:?}");
}

/// A report, and the exit code of its process.
struct Judged {
    report: Value,
    code: Option<i32>,
}

impl Judged {
    fn count(&self, verdict: &str) -> u64 {
        self.report["counts"][verdict].as_u64().unwrap()
    }

    /// Returns the verdict of one case.
    fn verdict(&self, name: &str) -> &str {
        self.case(name)["verdict"].as_str().unwrap()
    }

    fn case(&self, name: &str) -> &Value {
        let cases = self.report["cases"].as_array().unwrap();
        let found = cases.iter().find(|case| case["name"] == name);
        found.unwrap_or_else(|| panic!("there is no case {name}"))
    }

    /// Returns the names of the cases with this verdict.
    fn names(&self, verdict: &str) -> Vec<&str> {
        let cases = self.report["cases"].as_array().unwrap();
        let with = cases.iter().filter(|case| case["verdict"] == verdict);
        with.map(|case| case["name"].as_str().unwrap()).collect()
    }

    /// Returns every finding as text.
    fn findings(&self) -> String {
        let cases = self.report["cases"].as_array().unwrap();
        let found = |case: &&Value| !matches!(case["verdict"].as_str(), Some("passed" | "not-run"));
        cases.iter().filter(found).map(|case| format!("{case:#}\n")).collect()
    }
}
