//! The tasks of the extension `io.modelcontextprotocol/tasks`.

use serde::{Deserialize, Serialize};

use super::TaskStatus;
use crate::types::input_required::{InputRequests, InputResponses};
use crate::types::meta::Meta;
use crate::types::number;
use crate::types::request::ResultType;
use crate::types::tool::JsonObject;

/// The state of a task, without its result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// The id, which the server chooses.
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
    pub ttl_ms: Option<u64>,
    /// How often to ask for the state, in milliseconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number::opt_count"
    )]
    pub poll_interval_ms: Option<u64>,
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
    with_ttl_ms => ttl_ms: u64,
    with_poll_interval_ms => poll_interval_ms: u64,
} }

/// The result of a request that has become a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The kind of result: `Task`.
    pub result_type: ResultType,
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CreateTaskResult {
    /// Creates a result.
    pub fn new(task: Task) -> Self {
        Self { result_type: ResultType::Task, task, meta: Meta::new() }
    }
}

/// The state of a task with its result: the result of `tasks/get` and the params of `notifications/tasks`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DetailedTask {
    /// The kind of result: `Complete`. Absent in a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The requests to answer, if the task waits for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// The result of the request, if the task is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JsonObject>,
    /// The JSON-RPC error of the request, if the task failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JsonObject>,
    /// Metadata of the message.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl DetailedTask {
    /// Describes a task without its result.
    pub fn new(task: Task) -> Self {
        Self { task, ..Self::default() }
    }
}

setters! { DetailedTask {
    with_result_type => result_type: ResultType,
    with_input_requests => input_requests: InputRequests,
    with_result => result: JsonObject,
    with_error => error: JsonObject,
} }

/// The params of `tasks/update`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskParams {
    /// The task.
    pub task_id: String,
    /// The answers to the requests of the task.
    pub input_responses: InputResponses,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl UpdateTaskParams {
    /// Answers requests of a task.
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        Self { task_id: task_id.into(), input_responses, meta: Meta::new() }
    }
}

meta_setters! { CreateTaskResult, DetailedTask, UpdateTaskParams }
