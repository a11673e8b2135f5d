//! Progress and partial results.

mod client;
mod partial_results;
mod server;
