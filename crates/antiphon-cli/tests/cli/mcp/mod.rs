//! `antiphon mcp`: each command, in both eras, over HTTP and over stdio.

mod bridge;
mod commands;
mod help;
mod interrupted;
mod login;
mod questions;
mod servers;
mod terminal;
