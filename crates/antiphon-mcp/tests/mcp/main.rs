//! The integration tests of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` makes the values where they are passed")]

mod client;
mod documents;
#[path = "../server/support/mod.rs"]
#[allow(dead_code, reason = "the tests of the server use the rest")]
mod support;
mod types;
