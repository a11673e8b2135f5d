//! The context of a request: who asks, and the way back to the client while the request runs.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use antiphon::{CallError, CancellationToken, CloseReason, Context, Identity, Params, RawJson};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;

use super::McpServer;
use super::era::Era;
use super::error::missing_capability;
use super::questions::Questions;
use super::request::{RequestMeta, RequestParams};
use super::session::{Agreement, Session};
use super::tasks::{self, Task, TaskSlot};
use crate::types::{ClientCapabilities, Implementation, LoggingLevel, Meta, Revision, methods};

/// The context of a request, for its handler. Cheap to clone.
///
/// Reports progress and sends log messages to the client, asks the user or the model, and describes the client. The same
/// calls work in both eras of the protocol.
///
/// ```
/// use antiphon_mcp::{RequestContext, ToolError};
///
/// async fn index(files: Vec<String>, cx: RequestContext) -> Result<String, ToolError> {
///     for (done, file) in files.iter().enumerate() {
///         cx.progress(done as f64, Some(files.len() as f64), Some(file.as_str())).await;
///     }
///     Ok(format!("{} files", files.len()))
/// }
/// ```
#[derive(Clone)]
pub struct RequestContext(Arc<RequestState>);

struct RequestState {
    server: McpServer,
    era: Era,
    on_wire: Mutex<RequestOnWire>,
    /// The last progress: it must grow.
    progress: Mutex<Option<f64>>,
    questions: Arc<Questions>,
    /// Set if the call may become a task.
    slot: OnceLock<Arc<TaskSlot>>,
}

/// The request on the wire. A modern request that is repeated continues with another one.
#[derive(Clone)]
struct RequestOnWire {
    rpc: Context,
    params: Option<Params>,
    progress_token: Option<RawJson>,
    /// How many requests on the wire came before.
    number: u32,
    /// Whether the request has its response: nothing may be told any more.
    is_over: bool,
}

impl RequestContext {
    pub(crate) fn new(
        server: &McpServer,
        era: Era,
        rpc: Context,
        params: Option<Params>,
        meta: &RequestMeta<'_>,
        questions: Questions,
    ) -> Self {
        Self(Arc::new(RequestState {
            server: server.for_request(),
            era,
            on_wire: Mutex::new(RequestOnWire {
                rpc,
                progress_token: meta.progress_token(),
                params,
                number: 0,
                is_over: false,
            }),
            progress: Mutex::default(),
            questions: Arc::new(questions),
            slot: OnceLock::new(),
        }))
    }

    /// The server, for example to notify its clients that a resource was updated. This value and its clones do not keep
    /// the server alive.
    pub fn server(&self) -> &McpServer {
        &self.0.server
    }

    /// The revision of the protocol of this request.
    pub fn revision(&self) -> Revision {
        self.0.era.revision()
    }

    /// The name that the client gives itself. It is not verified: use it for display and logs only.
    pub fn client_info(&self) -> Option<Implementation> {
        match &self.0.era {
            Era::Modern(_) => self.meta_member(|meta| meta.client_info.map(RawValue::get)),
            Era::Legacy(session) => session.agreement()?.client(),
        }
    }

    /// The capabilities of the client.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        let capabilities = match &self.0.era {
            Era::Modern(_) => self.meta_member(|meta| meta.client_capabilities.map(RawValue::get)),
            Era::Legacy(session) => session.agreement().and_then(Agreement::capabilities),
        };
        capabilities.unwrap_or_default()
    }

    /// Fails with -32021 if the client has not declared these capabilities. Members that are `None` are not required.
    pub fn require(&self, required: ClientCapabilities) -> Result<(), antiphon::ErrorObject> {
        match super::capability::declares(&self.client_capabilities(), &required) {
            true => Ok(()),
            false => Err(missing_capability(required)),
        }
    }

    /// The metadata of the request, including members that the protocol does not define.
    pub fn meta(&self) -> Meta {
        let read = || {
            let params = self.params();
            let params = RequestParams::read(params.as_ref()).ok()?;
            serde_json::from_str(params.meta?.get()).ok()
        };
        read().unwrap_or_default()
    }

    fn meta_member<T: DeserializeOwned>(
        &self,
        member: impl for<'m> FnOnce(&RequestMeta<'m>) -> Option<&'m str>,
    ) -> Option<T> {
        let params = self.params();
        let params = RequestParams::read(params.as_ref()).ok()?;
        let meta = RequestMeta::read(&params).ok()?;
        serde_json::from_str(member(&meta)?).ok()
    }

    /// The request on the wire: its connection, its headers, and the values that layers have added.
    pub fn rpc(&self) -> Context {
        self.on_wire().rpc.clone()
    }

    pub(crate) fn params(&self) -> Option<Params> {
        self.on_wire().params.clone()
    }

    fn on_wire(&self) -> MutexGuard<'_, RequestOnWire> {
        self.0.on_wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the context of the same request at another server.
    pub(crate) fn of_server(&self, server: &McpServer) -> Self {
        Self(Arc::new(RequestState {
            server: server.for_request(),
            era: self.0.era.clone(),
            on_wire: Mutex::new(self.on_wire().clone()),
            progress: Mutex::default(),
            questions: self.0.questions.clone(),
            slot: self.0.slot.clone(),
        }))
    }

    /// Continues with the request that has repeated this one. It has metadata of its own.
    pub(crate) fn continue_with(
        &self,
        rpc: Context,
        params: Option<Params>,
        meta: &RequestMeta<'_>,
    ) {
        let mut on_wire = self.on_wire();
        let number = on_wire.number.wrapping_add(1);
        let progress_token = meta.progress_token();
        *on_wire = RequestOnWire { rpc, params, progress_token, number, is_over: false };
    }

    /// The value of this type that a layer or the application has added to the request.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.rpc().get::<T>().cloned()
    }

    /// The identity of the caller, if the server authenticates its callers.
    pub fn identity(&self) -> Option<Identity> {
        self.get()
    }

    /// A token that is cancelled when the client cancels the request or disconnects, or when the task of the call ends. The handler is
    /// dropped in any case; use the token for work that it has spawned.
    pub fn cancellation(&self) -> CancellationToken {
        match self.task_slot() {
            Some(slot) => slot.cancellation().clone(),
            None => self.rpc().cancellation().clone(),
        }
    }

    /// Reports progress to the client, if the client has asked for it. A report is dropped if its value is not larger than
    /// the last one.
    ///
    /// `total` is the value at the end, if it is known. The message is for people. In a task, it is also the status
    /// message; the tasks of 2026-07-28 have no other progress.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let (Some(task), Some(message)) = (self.task(), message) {
            task.say(message);
        }
        let Some(token) = self.on_wire().progress_token.clone() else { return };
        if !progress.is_finite() || !self.grows(progress) {
            tracing::debug!(progress, "progress is dropped: it has not grown");
            return;
        }
        // The message exists since 2025-03-26. Older clients ignore it.
        let total = total.filter(|total| total.is_finite()).map(number);
        let params =
            ProgressOnWire { progress_token: &token, progress: number(progress), total, message };
        self.tell(methods::PROGRESS, params).await;
    }

    /// Whether the client wants progress.
    pub fn wants_progress(&self) -> bool {
        self.on_wire().progress_token.is_some()
    }

    fn grows(&self, progress: f64) -> bool {
        let mut last = self.0.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let grows = last.is_none_or(|last| progress > last);
        if grows {
            *last = Some(progress);
        }
        grows
    }

    /// Sends a log message to the client, if the client wants messages of this level.
    ///
    /// A modern client asks for messages in each request. A legacy client sets the level with `logging/setLevel`; until
    /// then, it gets messages of `info` and above.
    pub async fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.log_of(None, level, data).await;
    }

    /// Like [`log`](Self::log), with the name of the part of the server that logs.
    pub async fn log_of(&self, logger: Option<&str>, level: LoggingLevel, data: impl Serialize) {
        if !self.logs(level) {
            return;
        }
        let mut params = json!({ "level": level, "data": data });
        if let Some(logger) = logger {
            params["logger"] = logger.into();
        }
        self.tell(methods::LOG_MESSAGE, params).await;
    }

    /// Whether the client wants log messages of this level.
    pub fn logs(&self, level: LoggingLevel) -> bool {
        self.log_level().is_some_and(|wanted| level >= wanted)
    }

    /// The least severe log messages that the client wants; `None` if it wants none.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        match &self.0.era {
            Era::Legacy(session) => Some(session.log_level()),
            Era::Modern(_) => self.meta_member(|meta| meta.log_level.map(RawValue::get)),
        }
    }

    /// Closes the event stream of a legacy HTTP request, while the request continues. The client resumes the stream after
    /// a pause, so a long call needs no open connection. Returns false if the request has no such stream.
    pub fn close_stream(&self) -> bool {
        self.task().is_none() && crate::http::close_stream(&self.rpc())
    }

    /// Notifies the client while the request runs. A client that cannot be reached misses it.
    async fn tell(&self, method: &str, params: impl Serialize) {
        if let Err(error) = self.notify(method, params).await {
            tracing::debug!(%error, method, "the client misses a notification");
        }
    }

    /// Sends a notification to the client before the response. In a legacy task, it is sent at any time.
    ///
    /// # Errors
    /// Fails if the client is gone, if the transport has no way back to it, or if the request has its response. Fails in
    /// a task of 2026-07-28, which has no notifications of its own.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        match self.task() {
            Some(task) => tasks::notify(self, task, method, &params).await,
            None => self.notify_before_response(method, params).await,
        }
    }

    async fn notify_before_response(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<(), CallError> {
        let (rpc, number) = {
            let on_wire = self.on_wire();
            (on_wire.rpc.clone(), on_wire.number)
        };
        let mut sending = pin!(rpc.notify(method, params));
        poll_fn(|poller| {
            // Held while the notification is queued, so that it cannot follow the response.
            let on_wire = self.on_wire();
            if on_wire.is_over || on_wire.number != number {
                let reason = CloseReason::from("the request has its response");
                return Poll::Ready(Err(CallError::Closed(reason)));
            }
            sending.as_mut().poll(poller)
        })
        .await
    }

    /// Ends the request: from now on, nothing is told to its client.
    pub(crate) fn end(&self) {
        self.on_wire().is_over = true;
    }

    pub(crate) fn era(&self) -> &Era {
        &self.0.era
    }

    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.0.era.session()
    }

    pub(crate) fn questions(&self) -> &Arc<Questions> {
        &self.0.questions
    }

    /// Lets the call become a task.
    pub(crate) fn set_task_slot(&self, slot: Arc<TaskSlot>) {
        let _ = self.0.slot.set(slot);
    }

    pub(crate) fn task_slot(&self) -> Option<&Arc<TaskSlot>> {
        self.0.slot.get()
    }

    /// The task that the call has become.
    pub(crate) fn task(&self) -> Option<&Arc<Task>> {
        self.task_slot()?.task()
    }
}

/// Ends a request when its handler is done or is dropped.
pub(crate) struct EndOnDrop(pub(crate) RequestContext);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The params of a progress notification. The token stays as the client has written it.
#[derive(Serialize)]
struct ProgressOnWire<'a> {
    #[serde(rename = "progressToken")]
    progress_token: &'a RawJson,
    progress: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// A number without a fraction is written as an integer.
fn number(value: f64) -> serde_json::Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value.fract() == 0.0 && value.abs() < EXACT {
        true => json!(value as i64),
        false => json!(value),
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext").field("era", &self.0.era).finish_non_exhaustive()
    }
}
