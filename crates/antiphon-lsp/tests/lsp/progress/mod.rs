//! Progress and partial results.

mod client;
mod late;
mod partial_results;
mod server;
