//! The `antiphon` binary from outside: a process, its wires, and what other people's programs make
//! of it.
//!
//! Nothing here links the library, but for the in-process wire. What is sent is written by hand, byte
//! by byte, so that a fault of the engine cannot be on both sides. No test sleeps, and every wait ends after [`support::PATIENCE`].

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

/// The service under test, for the wire that needs no process.
#[path = "../../src/demo/mod.rs"]
#[allow(dead_code)]
mod demo;

mod support;

mod bench;
mod checking;
mod choices;
mod commands;
mod completing;
mod discovering;
mod flood;
mod hostile;
mod interop;
mod middleware;
mod serving;
mod subscribing;
mod tls;
mod usual;
