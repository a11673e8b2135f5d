//! Black-box tests of the `antiphon` binary: its command line, its transports, and programs of other
//! ecosystems.
//!
//! Only the in-process transport links the library. All other messages are written by hand, so that a
//! bug of the library cannot cancel itself out. No test sleeps, and every wait ends after
//! [`support::PATIENCE`].

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

/// The service under test, for the in-process transport.
#[path = "../../src/demo/mod.rs"]
#[allow(dead_code)]
mod demo;

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
mod middleware;
mod openrpc;
mod serve;
mod session;
mod subscribe;
mod tls;
