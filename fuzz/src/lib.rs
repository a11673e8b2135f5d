//! What must hold for every input? One module a target, each with a function `check` that panics where
//! something does not hold.
//!
//! cargo-fuzz drives these functions (`fuzz_targets/`), and so does the smoke run of `tests/smoke.rs`,
//! which needs no nightly compiler. The first bytes of an input choose options, so that a corpus is
//! readable: limits, cuts, and then what a peer sends.

pub mod decode;
pub mod differential;
pub mod endpoint;
pub mod header;
pub mod http;
pub mod http_client;
pub mod line;
mod model;
pub mod server;
mod stream;
pub mod values;
pub mod websocket;
pub mod wire;

/// A thing to fuzz.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, as cargo-fuzz and the corpus have it.
    pub name: &'static str,
    /// Panics where something does not hold for this input.
    pub check: fn(&[u8]),
    /// The input that feeds it one message.
    pub seed: fn(&[u8]) -> Vec<u8>,
}

/// All there are.
pub const TARGETS: [Target; 10] = [
    Target { name: "line", check: line::check, seed: line::seed },
    Target { name: "header", check: header::check, seed: header::seed },
    Target { name: "values", check: values::check, seed: values::seed },
    Target { name: "websocket", check: websocket::check, seed: websocket::seed },
    Target { name: "decode", check: decode::check, seed: decode::seed },
    Target { name: "differential", check: differential::check, seed: differential::seed },
    Target { name: "server", check: server::check, seed: server::seed },
    Target { name: "http", check: http::check, seed: http::seed },
    Target { name: "http_client", check: http_client::check, seed: http_client::seed },
    Target { name: "endpoint", check: endpoint::check, seed: endpoint::seed },
];
