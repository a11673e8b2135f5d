//! Whether a call may become a task, and when it does.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use antiphon::{CancellationToken, Code, ErrorObject};
use serde_json::value::RawValue;

use super::capability::{has_tasks, missing_extension};
use super::task::Task;
use crate::McpServer;
use crate::server::era::Era;
use crate::server::request::{decode, invalid_params};
use crate::server::{RequestContext, RequestMeta, RequestParams, ServerTool};
use crate::types::tasks::{EXTENSION, TaskMetadata};
use crate::types::{ClientCapabilities, Revision, TaskSupport, methods};

/// When the call of a modern client becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStart {
    AtOnce,
    After(Duration),
    OnDemand,
}

/// The place for the task that a call may become.
pub(crate) struct TaskSlot {
    start: TaskStart,
    is_required: bool,
    /// The time to live that a legacy client asks for.
    ttl: Option<Duration>,
    /// Cancelled when the handler is dropped.
    cancellation: CancellationToken,
    /// Cancelled when the handler wants a task.
    demanded: CancellationToken,
    /// Cancelled when it is decided whether there is a task.
    settled: CancellationToken,
    task: OnceLock<Arc<Task>>,
}

impl TaskSlot {
    fn new(start: TaskStart, support: TaskSupport, ttl: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            start,
            is_required: support == TaskSupport::Required,
            ttl,
            cancellation: CancellationToken::new(),
            demanded: CancellationToken::new(),
            settled: CancellationToken::new(),
            task: OnceLock::new(),
        })
    }

    /// Waits until the call must become a task.
    pub(super) async fn begins(&self) {
        match self.start {
            TaskStart::AtOnce => {}
            TaskStart::OnDemand => self.demanded.cancelled().await,
            TaskStart::After(time) => {
                let _ = tokio::time::timeout(time, self.demanded.cancelled()).await;
            }
        }
    }

    /// Decides that the call is this task, or that it stays without one.
    pub(super) fn settle(&self, task: Option<Arc<Task>>) {
        if let Some(task) = task {
            let _ = self.task.set(task);
        }
        self.settled.cancel();
    }

    pub(super) fn is_settled(&self) -> bool {
        self.settled.is_cancelled()
    }

    pub(super) fn is_required(&self) -> bool {
        self.is_required
    }

    pub(super) fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    pub(crate) fn task(&self) -> Option<&Arc<Task>> {
        self.task.get()
    }
}

impl RequestContext {
    /// Makes the call a task from here on, if it may become one. The client gets the task, and the handler continues.
    /// Returns whether the call is a task.
    ///
    /// Questions before it are asked with the result of the call, questions after it in the task. See
    /// [`ServerTool::task_on_demand`].
    ///
    /// ```
    /// use antiphon_mcp::{RequestContext, ToolError};
    ///
    /// async fn export(cx: RequestContext) -> Result<String, ToolError> {
    ///     let roots = cx.roots().await?;
    ///     cx.begin_task().await;
    ///     Ok(format!("exported {} roots", roots.len()))
    /// }
    /// ```
    pub async fn begin_task(&self) -> bool {
        let Some(slot) = self.task_slot() else { return false };
        slot.demanded.cancel();
        slot.settled.cancelled().await;
        slot.task().is_some()
    }

    /// The id of the task that the call has become.
    pub fn task_id(&self) -> Option<&str> {
        self.task().map(|task| task.id())
    }
}

/// Decides whether a request may become a task.
///
/// # Errors
/// Fails if the client must ask for a task and does not, or must not and does.
pub(in crate::server) fn slot(
    server: &McpServer,
    method: &str,
    params: &RequestParams<'_>,
    meta: &RequestMeta<'_>,
    era: &Era,
) -> Result<Option<Arc<TaskSlot>>, ErrorObject> {
    if method != methods::CALL_TOOL {
        return Ok(None);
    }
    let Some(tool) = params.name.as_deref().and_then(|name| server.tool(name)) else {
        return Ok(None);
    };
    match era {
        Era::Modern(_) => modern(&tool, meta),
        Era::Legacy(_) => legacy(server, &tool, params, era.revision()),
    }
}

fn modern(tool: &ServerTool, meta: &RequestMeta<'_>) -> Result<Option<Arc<TaskSlot>>, ErrorObject> {
    let support = tool.task_support();
    if support == TaskSupport::Forbidden {
        return Ok(None);
    }
    let declared = meta.client_capabilities.map(RawValue::get);
    let declared = declared.and_then(|text| serde_json::from_str::<ClientCapabilities>(text).ok());
    if declared.is_some_and(|declared| declared.has_extension(EXTENSION)) {
        return Ok(Some(TaskSlot::new(tool.task_start(), support, None)));
    }
    match support {
        TaskSupport::Required => Err(missing_extension()),
        _ => Ok(None),
    }
}

fn legacy(
    server: &McpServer,
    tool: &ServerTool,
    params: &RequestParams<'_>,
    revision: Revision,
) -> Result<Option<Arc<TaskSlot>>, ErrorObject> {
    let wanted = params.task.map(RawValue::get).filter(|wanted| *wanted != "null");
    // Older revisions have no tasks, so the member means nothing to them.
    let wanted = wanted.filter(|_| revision == Revision::V2025_11_25);
    let support = tool.task_support();
    match (wanted, support) {
        (Some(_), TaskSupport::Forbidden) if has_tasks(server) => {
            Err(refused(tool, "does not support tasks; call it without `task`"))
        }
        (Some(wanted), TaskSupport::Optional | TaskSupport::Required) => {
            let wanted = read(wanted)?;
            let ttl = wanted.ttl.map(Duration::from_millis);
            Ok(Some(TaskSlot::new(TaskStart::AtOnce, TaskSupport::Required, ttl)))
        }
        (None, TaskSupport::Required) => {
            Err(refused(tool, "runs only as a task; call it with `task`"))
        }
        _ => Ok(None),
    }
}

/// Reads what a legacy client asks for.
fn read(text: &str) -> Result<TaskMetadata, ErrorObject> {
    match text.starts_with('{') {
        true => decode(text),
        false => Err(invalid_params("task", "must be an Object")),
    }
}

/// The specification of 2025-11-25 has this code for both cases.
fn refused(tool: &ServerTool, reason: &str) -> ErrorObject {
    let message = format!("Method not found: the tool `{}` {reason}", tool.name());
    ErrorObject::new(Code::METHOD_NOT_FOUND.0, message)
}

impl fmt::Debug for TaskSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSlot").field("start", &self.start).finish_non_exhaustive()
    }
}
