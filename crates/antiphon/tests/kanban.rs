//! Runs the test inside the example `kanban`.

#![cfg(all(feature = "macros", feature = "openrpc", feature = "unix", feature = "ws"))]
#![allow(dead_code, clippy::unwrap_used, reason = "the example as a module, without its `main`")]

#[path = "../examples/kanban.rs"]
mod kanban;
