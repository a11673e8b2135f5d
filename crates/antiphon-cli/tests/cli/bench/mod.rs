//! `bench` as a shell sees it: which replies are successes, and the kind of every error. No test
//! asserts a speed.

mod arguments;
mod counts;
mod disconnects;
mod replies;
mod reports;
mod servers;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Ended, antiphon, run};

fn bench(words: &[&str]) -> Ended {
    run(antiphon().arg("bench").args(words), b"")
}

/// The exit code of a run, its successful calls, and its errors by kind.
type Counts = (i32, u64, BTreeMap<String, u64>);

/// Runs `bench` with `--format json` and returns the counts of the first endpoint.
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

/// Asserts that all calls succeed.
#[track_caller]
fn succeeds(words: &[&str], calls: u64) {
    assert_eq!(counted(words), (0, calls, BTreeMap::new()), "{words:?}");
}

/// Asserts this exit code, this number of successful calls and exactly these errors.
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
