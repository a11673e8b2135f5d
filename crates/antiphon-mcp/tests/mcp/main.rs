//! The integration tests of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]

mod client;
mod documents;
mod types;
