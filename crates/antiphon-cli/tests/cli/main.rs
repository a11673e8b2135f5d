//! Black-box tests of the `antiphon` binary: its command line, its transports, and programs of other
//! ecosystems.
//!
//! Only the in-process transport and the MCP servers of the tests link the library. All other messages are
//! written by hand, so that a bug of the library cannot cancel itself out. No test sleeps, and every wait
//! ends after [`support::PATIENCE`].

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

/// The service under test, for the in-process transport.
#[path = "../../src/demo/mod.rs"]
#[allow(dead_code)]
mod demo;

/// The MCP server of the library's examples.
#[path = "../../../antiphon-mcp/examples/everything/main.rs"]
#[allow(dead_code)]
mod everything;

/// An authorization server.
#[path = "../../../antiphon-mcp/tests/auth/support/mod.rs"]
#[allow(dead_code)]
mod authorization;

mod support;

mod bench;
mod bitcoin;
mod checking;
mod commands;
mod completions;
mod ethereum_nodes;
mod flood;
mod handshake;
mod hostile;
mod http_and_ws;
mod http_fast_path;
mod interop;
mod mcp;
mod mcp_serve;
mod middleware;
mod openrpc;
mod serve;
mod session;
mod subscribe;
mod tls;
