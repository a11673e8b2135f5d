//! Other people's clients: what is found is what they do, and nothing else. Each finding below was
//! looked at by hand.
//!
//! They are in `interop/`. A part that is missing fails in CI, and is named elsewhere.

use super::judged;
use crate::interop::{node, python};

/// The findings of one client: failures, warnings, and choices that are not ours.
#[track_caller]
fn finds(flags: &[&str], client: &[&str], expected: [&[&str]; 3]) {
    let client: Vec<String> = client.iter().map(|word| (*word).to_owned()).collect();
    let judged = judged(&[flags, &["-j4", "--timeout", "8s"]].concat(), &client);
    let found = ["failed", "warned", "differs"].map(|verdict| judged.names(verdict));
    assert_eq!(found.each_ref().map(Vec::as_slice), expected, "{}", judged.findings());
    assert!(judged.count("passed") > 50, "only {} are run", judged.count("passed"));
}

/// Answers without a result, or without an id, or of another call, count as results with it.
#[test]
fn jayson_over_http() {
    let Some(script) = node("jayson_client.mjs") else { return };
    let failed = ["neither-result-nor-error", "answer-is-a-scalar", "answer-empty", "http-204"];
    let warned = [
        "wrong-id",
        "id-of-another-type",
        "result-id-null",
        "id-missing",
        "jsonrpc-missing",
        "jsonrpc-wrong",
    ];
    let differs = ["result-and-error-null", "jsonrpc-number", "http-500-result"];
    finds(&[], &["node", &path(&script), "{endpoint}"], [&failed, &warned, &differs]);
}

/// It looks at ids and shapes here. A Request of the server it leaves unanswered, and what is no JSON it
/// passes over.
#[test]
fn jayson_over_websocket() {
    let Some(script) = node("jayson_client.mjs") else { return };
    let client = ["node", &path(&script), "{endpoint}"];
    finds(&["--over", "ws"], &client, [&[], &[], &["not-json-alone", "request-answered"]]);
}

/// The first thing that comes is the answer, and a connection that ends without one is no error.
#[test]
fn jayson_over_tcp() {
    let Some(script) = node("jayson_client.mjs") else { return };
    let failed = [
        "answer-of-another",
        "neither-result-nor-error",
        "answer-cut-short",
        "answer-is-a-scalar",
        "answer-empty",
        "closed-at-once",
        "closed-before-answer",
        "closed-within-answer",
        "silent-then-closed",
        "request-is-no-answer",
    ];
    let warned = [
        "stranger-first",
        "id-of-another-type",
        "result-id-null",
        "id-missing",
        "jsonrpc-missing",
        "jsonrpc-wrong",
    ];
    let differs = ["result-and-error-null", "jsonrpc-number", "request-answered"];
    let client = ["node", &path(&script), "{endpoint}"];
    finds(&["--over", "tcp"], &client, [&failed, &warned, &differs]);
}

/// It hands on whatever has a `result`; its users look at the ids.
#[test]
fn jsonrpcclient_of_python() {
    let Some(script) = python("jsonrpcclient_http.py") else { return };
    let warned = [
        "wrong-id",
        "id-of-another-type",
        "result-id-null",
        "result-and-error",
        "result-null-and-error",
        "jsonrpc-missing",
        "jsonrpc-wrong",
    ];
    let differs = ["result-and-error-null", "jsonrpc-number", "http-500-result"];
    let program = script.get_program().to_string_lossy();
    finds(&[], &[&program, &path(&script), "{endpoint}"], [&[], &warned, &differs]);
}

/// It does not look at `jsonrpc`; all else is in order.
#[test]
fn vscode_jsonrpc_on_stdio() {
    let Some(script) = node("vscode_stdio_client.mjs") else { return };
    let warned = ["jsonrpc-missing", "jsonrpc-wrong"];
    let differs = ["result-and-error-null", "jsonrpc-number", "not-json-alone"];
    let flags = ["--over", "stdio", "--framing", "header"];
    finds(&flags, &["node", &path(&script)], [&[], &warned, &differs]);
}

/// The script of a command that would run it.
fn path(command: &std::process::Command) -> String {
    command.get_args().next().unwrap().to_string_lossy().into_owned()
}
