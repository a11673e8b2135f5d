//! `bench` as a shell sees it: what it counts as a success, and what as which error. How fast
//! anything is, no test says.

mod counts;
mod endings;
mod replies;
mod reports;
mod servers;
mod words;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Ended, antiphon, run};

fn bench(words: &[&str]) -> Ended {
    run(antiphon().arg("bench").args(words), b"")
}

/// What came of a run: its exit code, calls that succeeded, and errors by kind.
type Counts = (i32, u64, BTreeMap<String, u64>);

/// Runs it with `--format json` and gives what it counted at its first endpoint.
fn counted(words: &[&str]) -> Counts {
    let ended = bench(&[words, &["--format", "json"]].concat());
    let code = ended.code.unwrap();
    let report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {words:?} {ended:?}"));
    let target = &report["targets"][0];
    let calls = target["rounds"].as_array().unwrap().iter().map(|r| r["calls"].as_u64().unwrap());
    let errors = serde_json::from_value(target["errors"].clone()).unwrap();
    (code, calls.sum(), errors)
}

/// All of these calls succeed.
#[track_caller]
fn succeeds(words: &[&str], calls: u64) {
    assert_eq!(counted(words), (0, calls, BTreeMap::new()), "{words:?}");
}

/// It ends with this code, after so many calls, and exactly these errors.
#[track_caller]
fn fails(words: &[&str], code: i32, calls: u64, errors: &[(&str, u64)]) {
    let errors = errors.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
    assert_eq!(counted(words), (code, calls, errors), "{words:?}");
}

#[track_caller]
fn refuses(words: &[&str], code: i32, remedy: &str) {
    let ended = bench(words);
    assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{words:?}: {ended:?}");
    assert!(ended.stderr.contains(remedy), "{remedy:?} is missing: {}", ended.stderr);
}
