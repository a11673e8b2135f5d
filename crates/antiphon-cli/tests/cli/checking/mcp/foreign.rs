//! Real MCP servers. Each finding was examined by hand against the text of the specification: a missed fault fails
//! here, and so does a false one.

use std::net::TcpListener;

use crate::checking::{Judged, judged};
use crate::interop::script;
use crate::support::Scratch;

/// Returns the path of the program of a server package.
fn package(name: &str) -> String {
    script(&format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js"))
        .display()
        .to_string()
}

/// Checks a server over stdio.
fn over_stdio(command: &str, flags: &[&str]) -> Judged {
    judged(&[&[&format!("exec:{command}"), "--profile", "mcp", "--budget", "3m"], flags].concat())
}

/// Starts a server over HTTP, and checks it. `{port}` stands for its port.
fn over_http(command: &str, flags: &[&str]) -> Judged {
    // The port may be taken by another program in between; then the server does not start.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let command = command.replace("{port}", &port);
    let endpoint = format!("http://127.0.0.1:{port}/mcp");
    judged(&[&[&*endpoint, "--profile", "mcp", "--spawn", &command], flags].concat())
}

#[track_caller]
fn finds(judged: &Judged, failed: &[&str], warned: &[&str]) {
    let found = [judged.names("failed"), judged.names("warned")];
    assert_eq!(found, [failed, warned], "{}", judged.findings());
}

/// The TypeScript SDK ignores lines that are not JSON and cursors, and has its own codes for some errors.
#[test]
#[ignore = "needs interop/setup"]
fn everything_over_stdio() {
    let judged = over_stdio(&format!("node '{}' stdio", package("everything")), &LONG_OPERATION);
    let warned = [
        "mcp-legacy-parse-error",
        "mcp-legacy-tool-unknown-code",
        "mcp-legacy-cursor-invalid",
        "mcp-legacy-resource-unknown",
        "mcp-legacy-log-level-unknown",
    ];
    finds(&judged, &[], &warned);
    assert_eq!(judged.verdict("mcp-legacy-cancel"), "passed");
}

/// A tool that takes a second, with four steps of progress.
const LONG_OPERATION: [&str; 4] = [
    "--method",
    "tools/call",
    "--params",
    r#"{"name":"trigger-long-running-operation","arguments":{"duration":1,"steps":4}}"#,
];

/// The server answers a foreign Origin, and has status 400 where the specification requires 404.
#[test]
#[ignore = "needs interop/setup"]
fn everything_over_http() {
    let program = package("everything");
    let command = format!("env PORT={{port}} node '{program}' streamableHttp");
    let judged = over_http(&command, &LONG_OPERATION);
    let failed = ["mcp-legacy-http-origin", "mcp-legacy-http-session-deleted"];
    let warned = [
        "mcp-legacy-tool-unknown-code",
        "mcp-legacy-cursor-invalid",
        "mcp-legacy-resource-unknown",
        "mcp-legacy-log-level-unknown",
        "mcp-legacy-http-session-unknown",
    ];
    finds(&judged, &failed, &warned);
}

#[test]
#[ignore = "needs interop/setup"]
fn filesystem_over_stdio() {
    let scratch = Scratch::new();
    let folder = scratch.path("files");
    std::fs::create_dir(&folder).unwrap();
    let judged =
        over_stdio(&format!("node '{}' '{}'", package("filesystem"), folder.display()), &[]);
    let warned =
        ["mcp-legacy-parse-error", "mcp-legacy-tool-unknown-code", "mcp-legacy-cursor-invalid"];
    finds(&judged, &[], &warned);
}

#[test]
#[ignore = "needs interop/setup"]
fn memory_over_stdio() {
    let scratch = Scratch::new();
    let file = scratch.path("memory.jsonl");
    let command = format!("env MEMORY_FILE_PATH='{}' node '{}'", file.display(), package("memory"));
    let warned = [
        "mcp-legacy-parse-error",
        "mcp-legacy-tool-unknown-code",
        "mcp-legacy-cursor-invalid",
        "mcp-legacy-resource-unknown",
    ];
    finds(&over_stdio(&command, &[]), &[], &warned);
}

/// A command for the server on the Python SDK, which speaks both eras.
fn python(arguments: &str) -> String {
    let [program, server] = [".venv/bin/python", "mcp/check_server.py"].map(script);
    format!("'{}' '{}' {arguments}", program.display(), server.display())
}

const SLOW: [&str; 4] =
    ["--method", "tools/call", "--params", r#"{"name":"slow","arguments":{"steps":4}}"#];

/// The Python SDK ignores lines that are not JSON and cursors, and has its own codes for some errors.
#[test]
#[ignore = "needs interop/setup"]
fn python_over_stdio() {
    let judged = over_stdio(&python("stdio"), &SLOW);
    let warned = [
        "mcp-legacy-parse-error",
        "mcp-legacy-tool-unknown-code",
        "mcp-legacy-cursor-invalid",
        "mcp-legacy-resource-unknown",
        "mcp-legacy-prompt-unknown",
        "mcp-modern-parse-error",
        "mcp-modern-tool-unknown-code",
        "mcp-modern-cursor-invalid",
        "mcp-modern-prompt-unknown",
    ];
    finds(&judged, &[], &warned);
    for case in ["mcp-legacy-cancel", "mcp-modern-cancel", "mcp-modern-listen"] {
        assert_eq!(judged.verdict(case), "passed", "{case}");
    }
}

#[test]
#[ignore = "needs interop/setup"]
fn python_over_http() {
    let judged = over_http(&python("http {port}"), &SLOW);
    let warned = [
        "mcp-legacy-tool-unknown-code",
        "mcp-legacy-cursor-invalid",
        "mcp-legacy-resource-unknown",
        "mcp-legacy-prompt-unknown",
        "mcp-modern-tool-unknown-code",
        "mcp-modern-cursor-invalid",
        "mcp-modern-prompt-unknown",
    ];
    finds(&judged, &[], &warned);
    assert_eq!(judged.verdict("mcp-modern-http-name-base64"), "passed");
}
