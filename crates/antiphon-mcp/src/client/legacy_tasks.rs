//! Tool calls as tasks of 2025-11-25 (experimental).
//!
//! The client asks for the task, and then for its state until it ends or needs input. `tasks/result` waits for the end, and
//! the server sends its questions meanwhile. Dropping the call cancels the task.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use super::McpClient;
use super::call::{CallOptions, decoded, encoded};
use super::core::Core;
use super::error::McpError;
use super::tasks::{GRACE, MAX_LOSSES, RunningTask, pause};
use crate::types::tasks::legacy::{CreateTaskResult, ListTasksResult, Task, TaskResult};
use crate::types::tasks::{TaskParams, TaskStatus};
use crate::types::{CallToolResult, Revision, TaskSupport, Tool, methods};

impl Core {
    /// Whether the server runs tool calls as tasks of 2025-11-25.
    pub(super) fn has_legacy_tasks(&self) -> bool {
        let state = self.state();
        let requests = state.capabilities.tasks.as_ref().and_then(|tasks| tasks.requests.as_ref());
        let call = requests.and_then(|it| it.get("tools")).and_then(|tools| tools.get("call"));
        state.revision == Revision::V2025_11_25 && call.is_some_and(Value::is_object)
    }

    /// Whether a call of a tool asks for a task (2025-11-25, tasks, "Tool-Level Negotiation").
    pub(super) fn calls_as_task(&self, tool: &Tool) -> bool {
        let support = tool.execution.as_ref().and_then(|execution| execution.task_support);
        self.has_legacy_tasks()
            && match support {
                Some(TaskSupport::Required) => true,
                Some(TaskSupport::Optional) => self.has_tasks(),
                _ => false,
            }
    }

    /// Whether the server cancels tasks. In the extension, every server does.
    pub(super) fn can_cancel_tasks(&self) -> bool {
        let state = self.state();
        let tasks = state.capabilities.tasks.as_ref();
        state.revision.is_modern() || tasks.is_some_and(|tasks| tasks.cancel.is_some())
    }

    /// Waits for the result of a task.
    pub(super) async fn finish_legacy_task(
        self: &Arc<Self>,
        created: CreateTaskResult,
    ) -> Result<CallToolResult, McpError> {
        let mut task = created.task;
        let running = RunningTask::new(self, &task.task_id);
        let mut lifetime = Lifetime { start: Instant::now(), ttl: None };
        let mut losses = 0;
        loop {
            lifetime.ttl = task.ttl.map(Duration::from_millis);
            if task.status == TaskStatus::Cancelled {
                running.has_ended();
                let reason = task.status_message.unwrap_or_default();
                return Err(McpError::TaskCancelled { reason });
            }
            // A task that needs input asks while a request waits for its result ("Input Required Status").
            if task.status != TaskStatus::Working {
                match lifetime.limit(self.legacy_result(&task)).await {
                    Err(error) if error.is_loss() && losses < MAX_LOSSES && !lifetime.is_over() => {
                        tracing::debug!(%error, "the wait for the result of a task was lost");
                        losses += 1;
                    }
                    outcome => {
                        if outcome.as_ref().map_or_else(McpError::is_rpc, |_| true) {
                            running.has_ended();
                        }
                        return outcome;
                    }
                }
            }
            sleep(pause(task.poll_interval)).await;
            task = lifetime.limit(self.legacy_state(&task.task_id)).await?;
        }
    }

    async fn legacy_state(&self, id: &str) -> Result<Task, McpError> {
        let state: TaskResult = self.polled(id).await?;
        match state.task.task_id == id {
            true => Ok(state.task),
            false => Err(McpError::Protocol("the state is that of another task".to_owned())),
        }
    }

    /// Waits for the result, for as long as the task runs.
    async fn legacy_result(&self, task: &Task) -> Result<CallToolResult, McpError> {
        let id = &task.task_id;
        let options = CallOptions { is_endless: !task.status.is_final(), ..CallOptions::default() };
        let params = encoded(methods::TASK_RESULT, &TaskParams::new(id))?;
        let result = self.request(methods::TASK_RESULT, params, &options).await?;
        let result: CallToolResult = decoded(methods::TASK_RESULT, &result)?;
        match result.meta.related_task().is_none_or(|related| related == id) {
            true => Ok(result),
            false => Err(McpError::Protocol("the result is that of another task".to_owned())),
        }
    }
}

/// How long a server keeps a task.
struct Lifetime {
    start: Instant,
    /// `None` for a task without an end.
    ttl: Option<Duration>,
}

impl Lifetime {
    fn end(&self) -> Option<Instant> {
        self.start.checked_add(self.ttl?.saturating_add(GRACE))
    }

    fn is_over(&self) -> bool {
        self.end().is_some_and(|end| Instant::now() >= end)
    }

    /// Limits a wait to the life of the task.
    async fn limit<T>(
        &self,
        wait: impl Future<Output = Result<T, McpError>>,
    ) -> Result<T, McpError> {
        let Some(end) = self.end() else { return wait.await };
        let late = |_| McpError::TimedOut(self.ttl.unwrap_or_default());
        timeout_at(end, wait).await.map_err(late)?
    }
}

impl McpClient {
    /// Returns the tasks that a server of 2025-11-25 keeps for this client.
    ///
    /// # Errors
    /// Fails if the server does not list tasks: modern servers and older ones never do.
    pub async fn list_tasks(&self) -> Result<Vec<Task>, McpError> {
        let tasks = self.server_capabilities().tasks;
        let lists = tasks.is_some_and(|tasks| tasks.list.is_some());
        if !lists || self.revision() != Revision::V2025_11_25 {
            return Err(McpError::Unsupported("the server does not list tasks".to_owned()));
        }
        self.core.all_pages::<ListTasksResult>().await
    }
}
