//! The behavior of the public API, over real connections.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that unwraps nothing fails")]

mod documents;

// The generator is a program of its own: some of it is not needed here.
#[allow(dead_code, unreachable_pub)]
#[path = "../../generate/src"]
mod generate {
    pub mod model;
    pub mod names;
    pub mod render;
    pub mod type_crate;
}
mod faults;
mod generated;
mod layers;
mod lifecycle;
mod order;
mod pages;
mod progress;
mod raw_editor;
mod real_editors;
mod real_servers;
mod scratch;
mod session;
mod support;

// The generator's modules name each other from the root of their crate.
use generate::{model, names, type_crate};
