//! Clients of other projects, in both eras of the protocol and over both transports.

use std::process::Command;

use crate::programs::{EverythingServer, example, interop, passes};

/// The Python SDK, which has one client for both eras.
fn python() -> Command {
    let mut python = Command::new(interop(".venv/bin/python"));
    python.arg("-B").arg(interop("mcp/python_client.py"));
    python
}

/// The TypeScript SDK: version 1 in the legacy era, version 2 in the modern one.
fn typescript() -> Command {
    node("mcp/typescript_client.mjs")
}

/// The command line of the MCP Inspector.
fn inspector() -> Command {
    node("mcp/inspector.mjs")
}

fn node(script: &str) -> Command {
    interop("node_modules");
    let mut node = Command::new(interop("mcp/node"));
    node.arg(interop(script));
    node
}

fn passes_over_http(mut script: Command, era: &str) {
    let server = EverythingServer::start();
    passes(script.arg(era).arg(server.url()));
}

fn passes_over_stdio(mut script: Command, era: &str) {
    passes(script.arg(era).arg(example("everything_server")).arg("stdio:"));
}

#[test]
#[ignore = "needs interop/setup"]
fn the_python_sdk_in_the_legacy_era() {
    passes_over_http(python(), "legacy");
    passes_over_stdio(python(), "legacy");
}

#[test]
#[ignore = "needs interop/setup"]
fn the_python_sdk_in_the_modern_era() {
    passes_over_http(python(), "modern");
    passes_over_stdio(python(), "modern");
}

#[test]
#[ignore = "needs interop/setup"]
fn the_first_typescript_sdk() {
    passes_over_http(typescript(), "legacy");
    passes_over_stdio(typescript(), "legacy");
}

#[test]
#[ignore = "needs interop/setup"]
fn the_second_typescript_sdk() {
    passes_over_http(typescript(), "modern");
    passes_over_stdio(typescript(), "modern");
}

#[test]
#[ignore = "needs interop/setup"]
fn the_inspector_in_the_legacy_era() {
    passes_over_http(inspector(), "legacy");
    passes_over_stdio(inspector(), "legacy");
}

#[test]
#[ignore = "needs interop/setup"]
fn the_inspector_in_the_modern_era() {
    passes_over_http(inspector(), "modern");
    passes_over_stdio(inspector(), "modern");
}
