//! Clients of other projects. Each finding below was verified by hand.
//!
//! They are in `interop/`. A missing part fails in CI, and is only reported elsewhere.

use super::judged;
use crate::interop::{node, python};

/// The findings of one client: failures, warnings, and different choices.
#[track_caller]
fn finds(flags: &[&str], client: &[&str], expected: [&[&str]; 3]) {
    let client: Vec<String> = client.iter().map(|word| (*word).to_owned()).collect();
    let judged = judged(&[flags, &["-j8", "--timeout", "8s"]].concat(), &client);
    let found = ["failed", "warned", "differs"].map(|verdict| judged.names(verdict));
    assert_eq!(found.each_ref().map(Vec::as_slice), expected, "{}", judged.findings());
    assert!(judged.count("passed") > 50, "only {} are run", judged.count("passed"));
}

/// It accepts responses without a result, without an id, or to another call.
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

/// It checks ids and members. It does not respond to a Request of the server, and ignores invalid JSON.
#[test]
fn jayson_over_websocket() {
    let Some(script) = node("jayson_client.mjs") else { return };
    let client = ["node", &path(&script), "{endpoint}"];
    finds(&["--over", "ws"], &client, [&[], &[], &["not-json-alone", "request-answered"]]);
}

/// It treats the first message as the response, and a closed connection as a success.
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

/// It accepts every message with a `result`; its users check the ids.
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

/// It does not check `jsonrpc`; everything else passes.
#[test]
fn vscode_jsonrpc_on_stdio() {
    let Some(script) = node("vscode_stdio_client.mjs") else { return };
    let warned = ["jsonrpc-missing", "jsonrpc-wrong"];
    let differs = ["result-and-error-null", "jsonrpc-number", "not-json-alone"];
    let flags = ["--over", "stdio", "--framing", "header"];
    finds(&flags, &["node", &path(&script)], [&[], &warned, &differs]);
}

/// Returns the script of a command that runs it.
fn path(command: &std::process::Command) -> String {
    command.get_args().next().unwrap().to_string_lossy().into_owned()
}
