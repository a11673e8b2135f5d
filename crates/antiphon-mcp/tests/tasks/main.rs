//! Tasks on the wire: the extension of 2026-07-28, and the experimental form of 2025-11-25.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]

mod client;
mod http;
mod http_client;
mod legacy;
mod legacy_input;
mod lifetime;
mod limits;
mod modern;
mod modern_input;
mod ownership;
mod start;
mod status;
mod support;
mod tools;
