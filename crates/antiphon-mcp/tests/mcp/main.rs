//! The integration tests of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]

mod client;
mod documents;
#[path = "../server/support/mod.rs"]
#[allow(dead_code, reason = "the tests of the server use the rest")]
mod support;
mod types;
