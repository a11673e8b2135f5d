//! Tasks: requests whose result comes later.
//!
//! There are two forms. 2025-11-25 has experimental tasks, which the client asks for: [`legacy`]. The extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28 has tasks that the server creates: [`extension`].

pub mod extension;
pub mod legacy;

use serde::{Deserialize, Serialize};

use super::meta::Meta;
use super::number;

/// The name of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// The request is being processed.
    #[default]
    Working,
    /// The task waits for input.
    InputRequired,
    /// The result is available.
    Completed,
    /// The request failed.
    Failed,
    /// The task was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Whether the state never changes again.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Asks for a task, in the params of a request (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How long the task is kept after its creation, in milliseconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number::opt_count"
    )]
    pub ttl: Option<u64>,
}

impl TaskMetadata {
    /// Asks for a task.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { TaskMetadata { with_ttl => ttl: u64 } }

/// The params of `tasks/get`, `tasks/result` and `tasks/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskParams {
    /// The task.
    pub task_id: String,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl TaskParams {
    /// Refers to a task.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self { task_id: task_id.into(), meta: Meta::new() }
    }
}

meta_setters! { TaskParams }
