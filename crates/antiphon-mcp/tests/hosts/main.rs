//! The MCP hosts of other projects against the example `everything_server`, and the official conformance suite against
//! both examples. Each is a script in `interop/mcp`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]

mod conformance;
mod programs;
mod scripts;
