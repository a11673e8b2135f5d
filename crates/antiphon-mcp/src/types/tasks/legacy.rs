//! The experimental tasks of 2025-11-25.

use serde::{Deserialize, Serialize};

use super::TaskStatus;
use crate::types::meta::Meta;
use crate::types::number;
use crate::types::pagination::Cursor;
use crate::types::tool::JsonObject;

/// The state of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// The id, which the receiver of the request chooses.
    pub task_id: String,
    /// The state.
    pub status: TaskStatus,
    /// More about the state, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When the task was created, in ISO 8601.
    pub created_at: String,
    /// When the state last changed, in ISO 8601.
    pub last_updated_at: String,
    /// How long the task is kept after its creation, in milliseconds. `None` is written as null: without a limit.
    #[serde(default, deserialize_with = "number::opt_count")]
    pub ttl: Option<u64>,
    /// How often to ask for the state, in milliseconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number::opt_count"
    )]
    pub poll_interval: Option<u64>,
}

impl Task {
    /// Creates a task that is being processed.
    pub fn new(task_id: impl Into<String>, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        let last_updated_at = created_at.clone();
        Self { task_id: task_id.into(), created_at, last_updated_at, ..Self::default() }
    }
}

setters! { Task {
    with_status_message => status_message: String,
    with_ttl => ttl: u64,
    with_poll_interval => poll_interval: u64,
} }

/// The result of a request that has become a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CreateTaskResult {
    /// Creates a result.
    pub fn new(task: Task) -> Self {
        Self { task, ..Self::default() }
    }
}

/// The result of `tasks/get` and `tasks/cancel`, and the params of `notifications/tasks/status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskResult {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Metadata of the message.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl TaskResult {
    /// Creates a result.
    pub fn new(task: Task) -> Self {
        Self { task, meta: Meta::new() }
    }
}

/// The result of `tasks/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// The tasks of this page.
    pub tasks: Vec<Task>,
    /// The next page; `None` on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ListTasksResult {
    /// Creates a page.
    pub fn new(tasks: Vec<Task>) -> Self {
        Self { tasks, ..Self::default() }
    }
}

setters! { ListTasksResult { with_next_cursor => next_cursor: Cursor } }
meta_setters! { CreateTaskResult, TaskResult, ListTasksResult }
