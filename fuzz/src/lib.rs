//! Properties that hold for every input. Each target has a module with a function `check`, which panics
//! if a property does not hold.
//!
//! cargo-fuzz runs these functions (`fuzz_targets/`), and so does the smoke test (`tests/smoke`), which
//! needs no nightly compiler. The first bytes of an input select options (limits, cuts) and the rest is
//! what a peer sends, so a corpus is readable.

pub mod decode;
pub mod differential;
pub mod endpoint;
pub mod header;
pub mod http;
pub mod http_client;
pub mod line;
pub mod lsp_text;
mod model;
pub mod server;
mod stream;
pub mod values;
pub mod websocket;
pub mod wire;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name for cargo-fuzz and for the corpus.
    pub name: &'static str,
    /// Panics if a property does not hold for this input.
    pub check: fn(&[u8]),
    /// Builds the input with one message.
    pub seed: fn(&[u8]) -> Vec<u8>,
}

/// All targets.
pub const TARGETS: [Target; 11] = [
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
    Target { name: "lsp_text", check: lsp_text::check, seed: lsp_text::seed },
];
