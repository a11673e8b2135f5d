//! `#[antiphon_mcp::server]`: a server from the methods of a type.

#![cfg(feature = "macros")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod hygiene;
pub mod lints;
mod requests;
mod resources;
mod services;
mod tools;
mod ui;
mod unusual;
