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
