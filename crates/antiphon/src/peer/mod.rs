//! One duplex connection: two sides that call each other.
//!
//! The connection is one future that reads, dispatches and writes (`connection.rs`). The state that it
//! shares with its handles and tasks is in `shared.rs`. It never knows which wire carries it: that is
//! the business of its [`Transport`].

mod admission;
mod backlog;
mod connection;
mod ending;
mod link;
mod outgoing_calls;
mod progress;
mod reader;
mod registry;
mod shared;
mod subscriptions;
mod watchdog;
mod wire;
mod writer;

pub(crate) use connection::{Side, connect};
pub(crate) use ending::ENDED_WELL;
pub(crate) use registry::{ConnectionPermit, ConnectionRegistry, RegisteredPeer};
use shared::Shared;
pub(crate) use wire::{AtEof, LineFrames, Wire};
pub use wire::{Transport, TransportError};
