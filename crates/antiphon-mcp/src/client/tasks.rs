//! Tool calls that the server turns into tasks (the extension `io.modelcontextprotocol/tasks`).
//!
//! The caller of a tool does not see the task: the client asks for its state until it is final, and answers its questions
//! with the handlers. Dropping the call cancels the task.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use antiphon::ErrorObject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::call::{CallOptions, decoded, encoded};
use super::core::Core;
use super::error::McpError;
use crate::types::tasks::extension::{CreateTaskResult, DetailedTask, UpdateTaskParams};
use crate::types::tasks::{TaskParams, TaskStatus};
use crate::types::{CallToolResult, EmptyResult, InputRequests, methods};

/// The pause between two questions, if the server names none.
const PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often in succession a response about a task may be lost.
pub(super) const MAX_LOSSES: u32 = 3;
/// How much longer than its lifetime a task is asked for.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// The questions of a task that the client has answered. The task shows them until it has read the answers.
#[derive(Default)]
struct AnsweredQuestions {
    names: HashSet<String>,
    rounds: usize,
}

impl Core {
    /// Waits for the result of a task.
    pub(super) async fn finish_task(
        self: &Arc<Self>,
        created: CreateTaskResult,
    ) -> Result<CallToolResult, McpError> {
        let mut task = created.task;
        let running = RunningTask::new(self, &task.task_id);
        let start = Instant::now();
        let mut answered = AnsweredQuestions::default();
        loop {
            sleep(pause(task.poll_interval_ms)).await;
            let state: DetailedTask = self.polled(&task.task_id).await?;
            if state.task.task_id != task.task_id {
                return Err(McpError::Protocol("the state is that of another task".to_owned()));
            }
            task = state.task;
            if task.status.is_final() {
                running.has_ended();
                return outcome(task.status, state.result, state.error, task.status_message);
            }
            if let Some(requests) = state.input_requests {
                self.answer_task(&task.task_id, requests, &mut answered).await?;
            }
            let lifetime = task.ttl_ms.map(Duration::from_millis);
            if let Some(lifetime) = lifetime.filter(|it| start.elapsed() > it.saturating_add(GRACE))
            {
                return Err(McpError::TimedOut(lifetime));
            }
        }
    }

    /// Asks for the state of a task, again if the response was lost.
    pub(super) async fn polled<R: DeserializeOwned>(&self, id: &str) -> Result<R, McpError> {
        let params = TaskParams::new(id);
        for loss in 0..MAX_LOSSES {
            match self.task_call(methods::GET_TASK, id, &params).await {
                Err(error) if error.is_loss() => {
                    tracing::debug!(%error, "the state of a task was lost");
                    sleep(PAUSE * 2_u32.pow(loss)).await;
                }
                outcome => return outcome,
            }
        }
        self.task_call(methods::GET_TASK, id, &params).await
    }

    /// Answers the questions that were not answered before.
    async fn answer_task(
        &self,
        id: &str,
        mut requests: InputRequests,
        answered: &mut AnsweredQuestions,
    ) -> Result<(), McpError> {
        requests.retain(|name, _| !answered.names.contains(name));
        if requests.is_empty() {
            return Ok(());
        }
        if answered.rounds == self.settings.input_rounds {
            return Err(McpError::TooManyInputRounds(answered.rounds));
        }
        answered.rounds += 1;
        let answers = self.answers(requests).await?;
        answered.names.extend(answers.keys().cloned());
        let params = UpdateTaskParams::new(id, answers);
        self.task_call::<EmptyResult>(methods::UPDATE_TASK, id, &params).await.map(drop)
    }

    pub(super) async fn task_call<R: DeserializeOwned>(
        &self,
        method: &str,
        id: &str,
        params: &impl Serialize,
    ) -> Result<R, McpError> {
        let params = encoded(method, params)?;
        let mut options = CallOptions::default();
        options.headers.name = Some(id.to_owned());
        decoded(method, &self.request(method, params, &options).await?)
    }
}

pub(super) fn pause(named: Option<u64>) -> Duration {
    named.map_or(PAUSE, Duration::from_millis).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

fn outcome(
    status: TaskStatus,
    result: Option<crate::types::JsonObject>,
    error: Option<crate::types::JsonObject>,
    message: Option<String>,
) -> Result<CallToolResult, McpError> {
    let decode = |source| McpError::Decode { method: methods::GET_TASK.to_owned(), source };
    match status {
        TaskStatus::Completed => {
            serde_json::from_value(Value::Object(result.unwrap_or_default())).map_err(decode)
        }
        TaskStatus::Failed => {
            let error: ErrorObject =
                serde_json::from_value(Value::Object(error.unwrap_or_default())).map_err(decode)?;
            Err(McpError::Rpc(error))
        }
        _ => Err(McpError::TaskCancelled { reason: message.unwrap_or_default() }),
    }
}

/// Cancels a task on drop, unless it has ended.
pub(super) struct RunningTask {
    core: Arc<Core>,
    id: Option<String>,
}

impl RunningTask {
    pub(super) fn new(core: &Arc<Core>, id: &str) -> Self {
        Self { core: core.clone(), id: Some(id.to_owned()) }
    }

    pub(super) fn has_ended(mut self) {
        self.id = None;
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let core = self.core.clone();
        if !core.can_cancel_tasks() {
            return;
        }
        runtime.spawn(async move {
            let params = TaskParams::new(&id);
            let cancelled = core.task_call::<EmptyResult>(methods::CANCEL_TASK, &id, &params).await;
            if let Err(error) = cancelled {
                tracing::debug!(%error, "a task was not cancelled");
            }
        });
    }
}
