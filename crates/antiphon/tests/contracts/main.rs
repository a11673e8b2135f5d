//! The contracts between peers, each tested as a script of two sides.
//!
//! Races are created with barriers and channels, never with sleeps. [`within`] ends a test that hangs,
//! and names it.

#![cfg_attr(not(feature = "full"), allow(unused_imports, reason = "some tests need more"))]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[cfg(feature = "http")]
mod hand;
#[cfg(feature = "tls")]
mod pki;
mod support;

mod answers;
mod auth;
mod batches;
mod calling;
mod cancellation;
mod client;
#[cfg(feature = "http")]
mod connections;
mod endings;
#[cfg(feature = "http")]
mod exchanges;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_policy;
mod layers;
#[cfg(feature = "full")]
mod listeners;
#[cfg(feature = "http")]
mod mounted;
mod order;
mod overflow;
mod panics;
#[cfg(feature = "full")]
mod per_connection;
#[cfg(feature = "full")]
mod policies;
mod progress;
mod rates;
mod reentry;
mod room;
mod serving;
#[cfg(feature = "ws")]
mod silence;
mod sizes;
mod stalls;
mod subscriptions;
mod survival;
#[cfg(feature = "full")]
mod tap;
#[cfg(all(feature = "ws", feature = "tls"))]
mod tls;
#[cfg(feature = "http")]
mod tower_http_layers;
mod traces;
#[cfg(feature = "full")]
mod transports;
mod under_pressure;
#[cfg(feature = "ws")]
mod wires;
