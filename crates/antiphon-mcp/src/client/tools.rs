//! Tools: the list, and calls that are checked against the schemas of the list.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{BoxFuture, RawJson};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::McpClient;
use super::call::{CallOptions, McpCall, decoded, encoded};
use super::core::Core;
use super::error::McpError;
use super::known_tools::KnownTool;
use crate::param_headers::ParamHeaders;
use crate::types::tasks::TaskMetadata;
use crate::types::{
    CallToolParams, CallToolResult, JsonObject, ListToolsResult, Meta, ProgressParams, ResultType,
    Tool, error_codes, methods,
};

impl Core {
    /// Whether arguments are repeated in headers.
    fn uses_param_headers(&self) -> bool {
        self.wire.has_headers() && self.is_modern()
    }

    /// Remembers the tools of a page, and removes those that are not usable.
    fn learn(&self, page: &mut ListToolsResult, size: usize) {
        let uses_headers = self.uses_param_headers();
        if uses_headers {
            page.tools.retain(|tool| match ParamHeaders::of(&tool.input_schema) {
                Ok(_) => true,
                Err(reason) => {
                    tracing::warn!(tool = tool.name, reason, "a tool of the server is not usable");
                    false
                }
            });
        }
        self.tools.learn(&page.tools, size, uses_headers);
    }

    /// Returns one page of tools.
    pub(super) async fn tools_page(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListToolsResult, McpError> {
        let (mut page, size): (ListToolsResult, _) = self.sized_page(cursor).await?;
        self.learn(&mut page, size);
        Ok(page)
    }

    /// Returns all tools.
    pub(super) async fn all_tools(&self) -> Result<Vec<Tool>, McpError> {
        let (tools, size) = self.sized_list::<ListToolsResult>().await?;
        let mut all = ListToolsResult::new(tools);
        self.learn(&mut all, size);
        Ok(all.tools)
    }

    /// Returns what is known about a tool. The list is needed for the headers of a call over HTTP, and to know whether a
    /// legacy server runs the tool as a task.
    async fn known_tool(&self, name: &str) -> Option<Arc<KnownTool>> {
        let known = self.tools.get(name);
        if known.is_some() || !(self.uses_param_headers() || self.has_legacy_tasks()) {
            return known;
        }
        match self.all_tools().await {
            Ok(_) => self.tools.get(name),
            Err(error) => {
                tracing::debug!(%error, "the tools cannot be listed before a call");
                None
            }
        }
    }

    /// Sends a call, and waits for its result also if it is a task.
    async fn run_tool(
        self: &Arc<Self>,
        params: &CallToolParams,
        options: &CallOptions,
    ) -> Result<CallToolResult, McpError> {
        let method = methods::CALL_TOOL;
        let json = encoded(method, params)?;
        if params.task.is_some() {
            return self.run_as_task(json, options).await;
        }
        let result = self.request(method, json, options).await?;
        let found: CallToolResult = decoded(method, &result)?;
        match found.result_type {
            Some(ResultType::Task) if self.is_modern() => {
                let task = self.finish_task(decoded(method, &result)?);
                options.within(&self.inbox.clock, None, None, task).await
            }
            _ => Ok(found),
        }
    }

    /// Sends a call that asks for a task. Its progress arrives until the task ends, and its own timeout is for all of it.
    async fn run_as_task(
        self: &Arc<Self>,
        params: RawJson,
        options: &CallOptions,
    ) -> Result<CallToolResult, McpError> {
        let sink = options.sink();
        let mut first = CallOptions { receive: None, total: None, ..options.clone() };
        let _watched = sink.as_ref().map(|sink| {
            let watched = self.inbox.watch(sink.clone());
            first.meta.set_progress_token(&watched.token);
            watched
        });
        let task = async {
            let created = self.request(methods::CALL_TOOL, params, &first).await?;
            self.finish_legacy_task(decoded(methods::CALL_TOOL, &created)?).await
        };
        options.within(&self.inbox.clock, None, sink.as_deref(), task).await
    }

    /// Calls a tool.
    async fn call_tool(
        self: &Arc<Self>,
        mut params: CallToolParams,
        mut options: CallOptions,
    ) -> Result<CallToolResult, McpError> {
        let name = params.name.clone();
        let task = params.task.take().unwrap_or_default();
        let encode = |source| McpError::Encode { method: methods::CALL_TOOL.to_owned(), source };
        let arguments =
            params.arguments.as_ref().map_or(Ok(Value::Object(JsonObject::new())), RawJson::decode);
        let arguments: Value = arguments.map_err(encode)?;
        let mut retried = false;
        loop {
            let known = self.known_tool(&name).await;
            if let Some(known) = &known {
                if self.settings.validates {
                    known.check_arguments(&arguments)?;
                }
                let headers = known.headers.iter().filter_map(|it| it.of_arguments(&arguments));
                options.headers.params = headers.collect();
            }
            let is_task = known.as_ref().is_some_and(|known| self.calls_as_task(&known.tool));
            params.task = is_task.then(|| task.clone());
            match self.run_tool(&params, &options).await {
                // The schema of the tool has changed (2026-07-28, Streamable HTTP, "Client Behavior").
                Err(McpError::Rpc(error))
                    if error.code == error_codes::HEADER_MISMATCH && !retried =>
                {
                    retried = true;
                    self.inbox.cache.forget(methods::LIST_TOOLS);
                    self.all_tools().await?;
                }
                outcome => {
                    let result = outcome?;
                    if let Some(known) = known.filter(|_| self.settings.validates) {
                        known.check_result(&result)?;
                    }
                    return Ok(result);
                }
            }
        }
    }
}

/// A call of a tool. It is sent when it is awaited, and cancelled when the future is dropped.
#[must_use = "a call is sent when it is awaited"]
pub struct ToolCall<R = CallToolResult> {
    call: McpCall<CallToolResult>,
    core: Arc<Core>,
    params: Result<CallToolParams, McpError>,
    result: PhantomData<fn() -> R>,
}

impl<R> ToolCall<R> {
    fn new(core: &Arc<Core>, name: &str, arguments: &impl Serialize) -> Self {
        let encode = |source| McpError::Encode { method: methods::CALL_TOOL.to_owned(), source };
        let params = RawJson::encode(arguments).map_err(encode).map(|arguments| {
            let mut params = CallToolParams::new(name);
            // `()` means no arguments.
            params.arguments = Some(arguments).filter(|it| it.as_str() != "null");
            params
        });
        let call = McpCall::new(core.clone(), methods::CALL_TOOL, &()).named(name);
        Self { call, core: core.clone(), params, result: PhantomData }
    }

    /// Sets the timeout of this call. See [`McpCall::timeout`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call = self.call.timeout(timeout);
        self
    }

    /// Restarts the timeout with each progress notification, for at most `total` in all.
    pub fn extend_on_progress(mut self, total: Duration) -> Self {
        self.call = self.call.extend_on_progress(total);
        self
    }

    /// Asks for progress notifications, and passes them to a function, which must not block.
    pub fn on_progress(mut self, receive: impl Fn(ProgressParams) + Send + Sync + 'static) -> Self {
        self.call = self.call.on_progress(receive);
        self
    }

    /// Sets how long a server of 2025-11-25 keeps the task of this call, if the call becomes one. See
    /// [`McpClientBuilder::tasks`](super::McpClientBuilder::tasks).
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.params = self.params.map(|params| params.with_task(TaskMetadata::new().with_ttl(ttl)));
        self
    }

    /// Sets members of `_meta`.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.call = self.call.meta(meta);
        self
    }
}

impl IntoFuture for ToolCall<CallToolResult> {
    type Output = Result<CallToolResult, McpError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { call, core, params, .. } = self;
        Box::pin(async move { core.call_tool(params?, call.options).await })
    }
}

/// The result of a call as a type.
pub struct Typed<T>(PhantomData<fn() -> T>);

impl<T: DeserializeOwned + 'static> IntoFuture for ToolCall<Typed<T>> {
    type Output = Result<T, McpError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { call, core, params, .. } = self;
        Box::pin(async move {
            let params = params?;
            let tool = params.name.clone();
            typed(tool, core.call_tool(params, call.options).await?)
        })
    }
}

/// Reads a result as a type: the structured content, or else the text as JSON.
fn typed<T: DeserializeOwned>(tool: String, result: CallToolResult) -> Result<T, McpError> {
    if result.failed() {
        return Err(McpError::ToolFailed { tool, reason: result.joined_text() });
    }
    let read = match result.structured_content {
        Some(value) => serde_json::from_value(value),
        None => serde_json::from_str(&result.joined_text()),
    };
    read.map_err(|source| McpError::Decode { method: format!("tools/call {tool}"), source })
}

impl McpClient {
    /// Passes a call on: neither its arguments nor its result are checked, and the result keeps its members as they are.
    pub(crate) fn forward_tool(
        &self,
        params: &CallToolParams,
        meta: Meta,
    ) -> McpCall<BTreeMap<String, RawJson>> {
        let mut call = self.forward(methods::CALL_TOOL, Some(&params.name), params, meta);
        let known = self.core.tools.get(&params.name).filter(|known| !known.headers.is_empty());
        let arguments = params.arguments.as_ref().and_then(|it| it.decode::<Value>().ok());
        if let (Some(known), Some(arguments)) = (known, arguments) {
            let headers = known.headers.iter().filter_map(|it| it.of_arguments(&arguments));
            call.options.headers.params = headers.collect();
        }
        call
    }

    /// Returns all tools of the server.
    ///
    /// # Errors
    /// Fails if a page fails, or if the server repeats a cursor.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, McpError> {
        self.core.all_tools().await
    }

    /// Returns one page of tools; the first one without a cursor.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn list_tools_page(&self, cursor: Option<&str>) -> Result<ListToolsResult, McpError> {
        self.core.tools_page(cursor).await
    }

    /// Calls a tool. The arguments are a struct or map, or `()` for none.
    ///
    /// If the tools were listed, the arguments and the result are checked against the schemas of the tool. Over HTTP
    /// with a modern server, the first call of an unknown tool lists the tools, because the call needs headers that the
    /// schema defines.
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> ToolCall {
        ToolCall::new(&self.core, name, &arguments)
    }

    /// Calls a tool, and reads its result as a type: the structured content, or else the text as JSON.
    pub fn call_tool_as<T: DeserializeOwned + 'static>(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> ToolCall<Typed<T>> {
        ToolCall::new(&self.core, name, &arguments)
    }
}
