//! The contracts of the library that a peer may try to break, each tested as a script of two sides.
//!
//! Races are made with barriers and channels, never with sleeps. [`within`] fails a test that hangs.

#![cfg_attr(not(feature = "full"), allow(unused_imports, reason = "some tests need more"))]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod event_log;
#[cfg(feature = "tls")]
mod pki;
#[cfg(feature = "http")]
mod scripted_http_server;
mod support;

mod after_reply;
mod auth;
mod backpressure;
mod batches;
#[cfg(feature = "full")]
mod bitcoin;
#[cfg(feature = "full")]
mod bitcoin_core;
#[cfg(feature = "full")]
mod bitcoin_wire;
mod call_errors;
mod callbacks;
mod caller_vanishes;
mod calling;
mod cancellation;
mod client;
mod combinations;
mod endpoints;
#[cfg(feature = "full")]
mod engine_jwt;
#[cfg(feature = "full")]
mod ethereum;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_client_connections;
#[cfg(feature = "http")]
mod http_client_responses;
#[cfg(feature = "http")]
mod http_policy;
#[cfg(feature = "http")]
mod inside_axum;
#[cfg(feature = "ws")]
mod keep_alive;
mod layer_functions;
mod layers;
#[cfg(feature = "full")]
mod listeners;
mod message_sizes;
#[cfg(feature = "http")]
mod mounted_http_service;
mod null_params;
mod order;
mod panics;
#[cfg(feature = "full")]
mod per_connection;
#[cfg(feature = "full")]
mod policies;
#[cfg(feature = "full")]
mod policy_fast_path;
mod progress;
mod rate_limits;
mod reconnect;
mod responses;
mod shutdown;
mod slow_subscribers;
mod spawned_tasks;
mod stall_timeouts;
mod subscriptions;
#[cfg(feature = "full")]
mod tap;
#[cfg(all(feature = "ws", feature = "tls"))]
mod tls;
#[cfg(feature = "http")]
mod tower_http_layers;
mod traces;
#[cfg(feature = "full")]
mod transports;
#[cfg(feature = "ws")]
mod websocket;
