//! `antiphon check-client` as a command.
//!
//! This test binary is its own client under test: each client is an ignored test, which check-client starts.
//! So the clients need no other program.

mod foreign;
mod mutant;
mod mutants;
mod ours;
mod web;
mod words;

use std::time::Duration;

use super::Judged;
use crate::support::{Ended, antiphon, run_within};

/// A short timeout, because a hanging client uses it up in every scenario.
const LONG: Duration = Duration::from_secs(300);

/// Runs `antiphon check-client` with these flags for this client.
fn check_client(flags: &[&str], client: &[String]) -> Ended {
    let mut command = antiphon();
    command.arg("check-client").args(flags).arg("--").args(client);
    run_within(&mut command, b"", LONG)
}

/// Runs the command, and parses its report.
fn judged(flags: &[&str], client: &[String]) -> Judged {
    let ended = check_client(&[flags, &["--format", "json"]].concat(), client);
    let report = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{flags:?} give no report ({error}): {ended:?}"));
    Judged { report, code: ended.code }
}

/// Returns the command of the ignored test with this name.
fn client(name: &str) -> Vec<String> {
    let this = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let name = format!("checking::clients::{name}");
    let words = [&*this, &name, "{endpoint}", "--exact", "--ignored", "--nocapture"];
    words.map(str::to_owned).to_vec()
}

/// Returns the endpoint on the command line of a client.
fn endpoint() -> Option<String> {
    std::env::args().find(|word| word.contains("://") || word.starts_with("unix:"))
}

/// Returns the command of `antiphon call`.
fn antiphon_call(words: &[&str]) -> Vec<String> {
    let program = antiphon().get_program().to_string_lossy().into_owned();
    std::iter::once(program).chain(words.iter().map(|word| (*word).to_owned())).collect()
}
