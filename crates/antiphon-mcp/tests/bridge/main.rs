//! The bridge on the wire: clients of both eras on one side, servers of both eras on the other.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` makes the values where they are passed")]

mod abuse;
mod bytes;
mod changes;
mod completions;
mod connections;
mod elicitations;
mod fake;
mod names;
mod questions;
mod sessions;
mod signals;
#[path = "../server/support/mod.rs"]
#[allow(dead_code, reason = "the tests of the server use the rest")]
mod support;
mod upstreams;
