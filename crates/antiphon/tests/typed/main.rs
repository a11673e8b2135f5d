//! `#[rpc]` and `#[derive(RpcError)]`: one trait on both sides of a connection.

#![cfg(all(feature = "macros", feature = "memory", feature = "tcp"))]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod blocking;
mod both_ways;
mod calls;
mod extended;
mod failures;
mod fallible_streams;
mod hygiene;
mod library;
pub mod lints;
mod nested;
#[cfg(feature = "openrpc")]
mod openrpc;
mod params;
mod shared_service;
mod stateful;
mod subscriptions;
mod ui;
#[cfg(feature = "validate")]
mod validate;
