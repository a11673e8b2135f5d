//! Authorization over HTTP, with servers in this process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod browsers;
mod client_flow;
mod client_refusals;
mod file_token_store;
mod introspection;
mod loopback_redirect;
mod proof_of_possession;
mod real_server;
mod remote_keys;
mod resource_server;
mod secure_fetch;
mod step_up;
mod support;
mod tokens;
