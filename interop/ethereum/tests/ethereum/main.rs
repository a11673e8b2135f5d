//! Clients of other projects against the toy node, and our client against nodes of other projects.
//!
//! A test of a Node or Python package, or of a node, needs `interop/setup` and is ignored by default.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod alloy;
mod nodes;
mod scripts;
mod support;
