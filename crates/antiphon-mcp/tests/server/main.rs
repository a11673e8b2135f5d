//! The behavior of the server on the wire, in both eras, over duplex connections and over HTTP.
//!
//! The module `abuse` has hostile clients. Its long tests are ignored: `cargo test -p antiphon-mcp --test server --
//! --ignored --test-threads 1` runs them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` makes the values where they are passed")]

mod abuse;
mod asking;
mod changes;
mod features;
mod http;
mod lifecycle;
mod lists;
mod protocol;
mod rounds;
mod signals;
mod support;
