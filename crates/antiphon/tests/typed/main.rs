//! `#[rpc]` and `#[derive(RpcError)]`: one trait on both sides of a connection.

#![cfg(all(feature = "macros", feature = "memory", feature = "tcp"))]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod both_ways;
mod calls;
mod failures;
mod library;
#[cfg(feature = "openrpc")]
mod openrpc;
mod params;
mod subscriptions;
mod ui;
#[cfg(feature = "validate")]
mod validate;
