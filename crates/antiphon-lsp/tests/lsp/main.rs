//! The behavior of the public API.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]

mod documents;
