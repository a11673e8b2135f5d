//! Any JSON-RPC service as a server of the protocol: its tools, and its subscriptions as resources.
//!
//! The service and its client are on connections in memory. The client of the protocol sends raw messages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]

mod calls;
mod client;
mod contract;
mod refused;
mod resources;
mod tools;
