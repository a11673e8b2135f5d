//! The official conformance suite, with the requirements of each revision that has some.

use std::process::Command;

use crate::programs::{example, interop, passes};

fn suite(leg: &str) -> Command {
    interop("node_modules/@modelcontextprotocol/conformance");
    let mut suite = Command::new(interop("mcp/conformance"));
    suite.arg(leg);
    suite
}

#[test]
#[ignore = "needs interop/setup"]
fn the_server_meets_the_requirements_of_each_revision() {
    passes(suite("server").env("EVERYTHING_SERVER", example("everything_server")));
}

#[test]
#[ignore = "needs interop/setup"]
fn the_client_meets_the_requirements_of_each_revision() {
    passes(suite("client").env("EVERYTHING_CLIENT", example("everything_client")));
}
