//! Tasks: tool calls whose result the client fetches later, in both forms of the protocol.
//!
//! 2025-11-25 has experimental tasks, which the client asks for. The extension `io.modelcontextprotocol/tasks` of
//! 2026-07-28 has tasks that the server creates. A handler sees no difference: it runs in a task of its own, and its
//! questions wait there for the client.
//!
//! A task belongs to the identity of its caller; without one, to the session of a legacy client. A modern client without an
//! identity is recognized only by the id, which nobody can guess. Tasks are kept in memory, until their time to live ends.

mod capability;
mod convert;
mod listen;
mod methods;
mod owner;
mod result;
mod settings;
mod slot;
mod store;
mod task;
mod timestamp;
mod wire;

pub use settings::TaskSettings;

pub(super) use capability::{with_extension, with_legacy};
pub(super) use convert::{guard, run, run_legacy};
pub(super) use listen::{subscribed, tell_states};
pub(super) use methods::serve;
pub(super) use result::notify;
pub(super) use slot::{TaskSlot, TaskStart, slot};
pub(super) use store::TaskStore;
pub(super) use task::Task;
pub(crate) use timestamp::iso_8601;
pub(super) use wire::TaskNotification;
pub(crate) use wire::related;
