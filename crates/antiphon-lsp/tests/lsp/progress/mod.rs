//! Progress and partial results.

mod partial_results;
mod server;
