//! `antiphon session` and the lines of `--init`.

mod init;
mod interrupt;
mod messages;
mod prompt;
mod real;
mod script;

use serde_json::Value;

use crate::support::{Ended, FakeServer, Framing, antiphon, run};

/// Runs `antiphon session ENDPOINT WORDS` with this stdin.
fn session(endpoint: &str, words: &[&str], stdin: &str) -> Ended {
    run(antiphon().args(["session", endpoint]).args(words), stdin.as_bytes())
}

/// Runs lines against a server that is written by hand, and returns what it saw.
fn session_with(
    framing: Framing,
    respond: impl FnMut(&Value) -> Vec<String> + Send + 'static,
    words: &[&str],
) -> (Ended, Vec<Value>) {
    let server = FakeServer::start(framing, respond);
    let endpoint = server.endpoint();
    (session(&endpoint, words, ""), server.record())
}

fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}
