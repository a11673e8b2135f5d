//! A duplex connection, on which both sides can call each other.
//!
//! A connection is one future that reads, dispatches and writes (`connection_task.rs`). The state that
//! it shares with its handles and with spawned tasks is in `shared.rs`. It does not know the wire below
//! it, only the [`Transport`] trait.

mod admission;
mod backlog;
mod connection_registry;
mod connection_task;
mod link;
mod outgoing_calls;
mod progress;
mod read_ahead;
mod reader;
mod shared;
mod shutdown;
mod spawned_tasks;
mod subscriptions;
mod transport;
mod watchdog;
mod writer;

pub(crate) use connection_registry::{ConnectionPermit, ConnectionRegistry, RegisteredPeer};
pub(crate) use connection_task::{ConnectionConfig, connect};
use shared::Shared;
pub(crate) use transport::{AtEof, LineFrames, Wire};
pub use transport::{Transport, TransportError};
