//! Tasks in the forms of both eras.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{Code, ErrorObject, Outcome, RawJson};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::task::{Snapshot, Task, TaskEnd};
use super::timestamp::iso_8601;
use crate::server::RequestContext;
use crate::server::changes::SubscriptionMeta;
use crate::server::reply::{complete_value, complete_value_as};
use crate::types::meta::RELATED_TASK;
use crate::types::methods;
use crate::types::tasks::{TaskStatus, extension, legacy};

/// The state of a modern task, with its result. The result stays the text that the handler has made.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DetailedTask {
    #[serde(flatten)]
    task: extension::Task,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<BTreeMap<String, InputRequest>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

#[derive(Serialize)]
struct InputRequest {
    method: &'static str,
    params: Box<RawValue>,
}

/// The params of a notification about a task.
#[derive(Serialize)]
pub(crate) struct TaskNotification<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<SubscriptionMeta<'a>>,
    #[serde(flatten)]
    state: EitherTask,
}

#[derive(Serialize)]
#[serde(untagged)]
enum EitherTask {
    Modern(Box<DetailedTask>),
    Legacy(legacy::Task),
}

impl Task {
    /// The notification of a change of this task.
    pub(crate) fn notification_method(&self) -> &'static str {
        match self.owner().is_modern() {
            true => methods::TASKS,
            false => methods::TASK_STATUS,
        }
    }

    /// The params of the notification: the state at this moment.
    pub(crate) fn notification<'a>(
        self: &Arc<Self>,
        meta: Option<SubscriptionMeta<'a>>,
    ) -> TaskNotification<'a> {
        let state = match self.owner().is_modern() {
            true => EitherTask::Modern(Box::new(detailed(self))),
            false => EitherTask::Legacy(legacy_task(self)),
        };
        TaskNotification { meta, state }
    }
}

/// The result of a call that has become a task.
pub(super) fn created(cx: &RequestContext, task: &Arc<Task>) -> Outcome {
    match cx.era().is_modern() {
        true => complete_value_as(cx, "task", &extension_task(task, task.snapshot())),
        false => {
            let meta = json!({ RELATED_TASK: { "taskId": task.id() } });
            complete_value(cx, &json!({ "task": legacy_task(task), "_meta": meta }))
        }
    }
}

/// The state of a task: the result of `tasks/get`, and of `tasks/cancel` in 2025-11-25.
pub(super) fn state(cx: &RequestContext, task: &Arc<Task>) -> Outcome {
    match cx.era().is_modern() {
        true => complete_value(cx, &detailed(task)),
        false => complete_value(cx, &legacy_task(task)),
    }
}

/// What the call would have returned without a task.
pub(super) fn outcome(task: &Task, end: TaskEnd) -> Outcome {
    match end {
        TaskEnd::Completed { result, .. } => {
            related(&result, task.id()).map_err(ErrorObject::internal)
        }
        TaskEnd::Failed(error) => Err(error),
        TaskEnd::Cancelled => {
            Err(ErrorObject::new(Code::INTERNAL_ERROR.0, "the task was cancelled"))
        }
    }
}

/// Adds the id of a task to the metadata of params or of a result. Anything but an Object stays as it is.
pub(crate) fn related(message: &RawJson, task_id: &str) -> Result<RawJson, serde_json::Error> {
    type Members = BTreeMap<String, Box<RawValue>>;
    if !message.as_str().starts_with('{') {
        return Ok(message.clone());
    }
    let mut members: Members = message.decode()?;
    let meta = members.get("_meta").and_then(|meta| serde_json::from_str(meta.get()).ok());
    let mut meta: Members = meta.unwrap_or_default();
    let task = serde_json::value::to_raw_value(&json!({ "taskId": task_id }))?;
    meta.insert(RELATED_TASK.to_owned(), task);
    members.insert("_meta".to_owned(), serde_json::value::to_raw_value(&meta)?);
    RawJson::encode(&members)
}

pub(super) fn legacy_task(task: &Arc<Task>) -> legacy::Task {
    let state = task.snapshot();
    let mut described = legacy::Task::new(task.id(), iso_8601(task.created()))
        .with_ttl(millis(task.ttl()))
        .with_poll_interval(millis(task.poll_interval()));
    described.status = state.status;
    described.status_message = state.message;
    described.last_updated_at = iso_8601(state.updated);
    described
}

fn extension_task(task: &Task, state: Snapshot) -> extension::Task {
    let mut described = extension::Task::new(task.id(), iso_8601(task.created()))
        .with_ttl_ms(millis(task.ttl()))
        .with_poll_interval_ms(millis(task.poll_interval()));
    described.status = state.status;
    described.status_message = state.message;
    described.last_updated_at = iso_8601(state.updated);
    described
}

fn detailed(task: &Arc<Task>) -> DetailedTask {
    let mut state = task.snapshot();
    let input_requests = match state.status {
        TaskStatus::InputRequired => Some(input_requests(task)),
        _ => None,
    };
    let (result, error) = match state.end.take() {
        Some(TaskEnd::Completed { result, .. }) => (Some(result), None),
        Some(TaskEnd::Failed(error)) => (None, Some(error)),
        Some(TaskEnd::Cancelled) | None => (None, None),
    };
    DetailedTask { task: extension_task(task, state), input_requests, result, error }
}

fn input_requests(task: &Task) -> BTreeMap<String, InputRequest> {
    let open = task.open_questions().into_iter();
    open.map(|asked| (asked.key, InputRequest { method: asked.method, params: asked.params }))
        .collect()
}

/// A positive number of milliseconds.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}
