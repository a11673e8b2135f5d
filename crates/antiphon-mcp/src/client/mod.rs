//! The client: calls servers of every revision, over every transport.
//!
//! [`McpClient::connect`] detects the revision of the server. With a modern server, each request states its revision and
//! the capabilities of the client. With a legacy server, the client begins a session. The application does not see the
//! difference: the same handlers answer the questions of both, and [`McpClient::listen`] returns the same notifications.

mod builder;
mod cache;
mod call;
mod core;
pub(crate) mod credentials;
mod duplex;
mod error;
mod handlers;
mod handshake;
mod http;
mod inbox;
mod known_tools;
mod legacy_tasks;
mod listen;
mod login_clock;
mod pages;
mod renewal;
mod served_tasks;
mod settings;
mod tasks;
mod tools;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use antiphon::RawJson;
use futures_util::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use builder::McpClientBuilder;
pub use call::McpCall;
pub use credentials::{Credentials, Refusal};
pub use error::McpError;
pub use handshake::ServerEra;
pub use inbox::ServerNotification;
pub use listen::Subscription;
pub use tools::{ToolCall, Typed};

use self::call::decoded;
use self::core::Core;
use self::inbox::locked;
use crate::types::{
    CompleteParams, CompleteResult, EmptyResult, GetPromptParams, GetPromptResult, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, LoggingLevel, Meta,
    Prompt, ReadResourceParams, ReadResourceResult, Reference, RequestParams, Resource,
    ResourceTemplate, Revision, Root, ServerCapabilities, SetLevelParams, SubscribeParams,
    UnsubscribeParams, methods,
};

/// A client of one MCP server. Cheap to clone.
///
/// ```no_run
/// use antiphon_mcp::client::{McpClient, McpError};
/// use serde_json::json;
///
/// # async fn example() -> Result<(), McpError> {
/// let client = McpClient::connect("exec:npx -y @modelcontextprotocol/server-everything").await?;
/// for tool in client.list_tools().await? {
///     println!("{}", tool.name);
/// }
/// let result = client.call_tool("echo", json!({"message": "hello"})).await?;
/// println!("{}", result.joined_text());
/// client.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct McpClient {
    core: Arc<Core>,
    http_sse: bool,
}

impl McpClient {
    /// Connects with default settings. The endpoint is `https://…`, `http://…`, `exec:` and a command, `tcp://…`,
    /// `unix:…`, `ws://…` or `memory:…`.
    ///
    /// # Errors
    /// See [`McpClientBuilder::connect`].
    pub async fn connect(endpoint: &str) -> Result<Self, McpError> {
        Self::builder().connect(endpoint).await
    }

    /// Returns a builder with default settings.
    pub fn builder() -> McpClientBuilder {
        McpClientBuilder::default()
    }

    /// The revision in use.
    pub fn revision(&self) -> Revision {
        self.core.state().revision
    }

    /// What the client has found out about the server. See [`McpClientBuilder::assume`].
    pub fn era(&self) -> ServerEra {
        let mut era = ServerEra::new(self.revision());
        era.http_sse = self.http_sse;
        era
    }

    /// The name of the server, which it may omit.
    pub fn server_info(&self) -> Option<Implementation> {
        self.core.state().info.clone()
    }

    /// What the server supports.
    pub fn server_capabilities(&self) -> ServerCapabilities {
        self.core.state().capabilities.clone()
    }

    /// How to use the server, for the model.
    pub fn instructions(&self) -> Option<String> {
        self.core.state().instructions.clone()
    }

    /// Calls any method. The params are a struct or map, or `()` for none.
    pub fn request<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> McpCall<R> {
        let call = McpCall::new(self.core.clone(), method, &params);
        let is_none = call.params.as_ref().is_ok_and(|params| params.as_str() == "null");
        if is_none { McpCall::new(self.core.clone(), method, &RequestParams::new()) } else { call }
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// Fails if the params cannot be encoded, or if the connection fails.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), McpError> {
        let encode = |source| McpError::Encode { method: method.to_owned(), source };
        let params = RawJson::encode(&params).map_err(encode)?;
        let params = Some(params).filter(|params| params.as_str() != "null");
        self.core.notify(method, params).await
    }

    /// Returns all prompts.
    ///
    /// # Errors
    /// Fails if a page fails, or if the server repeats a cursor.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, McpError> {
        self.core.all_pages::<ListPromptsResult>().await
    }

    /// Returns one page of prompts; the first one without a cursor.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn list_prompts_page(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListPromptsResult, McpError> {
        self.core.page(cursor).await
    }

    /// Returns the messages of a prompt.
    pub fn get_prompt<K: Into<String>, V: Into<String>>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> McpCall<GetPromptResult> {
        let mut params = GetPromptParams::new(name);
        for (argument, value) in arguments {
            params = params.with_argument(argument, value);
        }
        McpCall::new(self.core.clone(), methods::GET_PROMPT, &params).named(name)
    }

    /// Returns all resources.
    ///
    /// # Errors
    /// Fails if a page fails, or if the server repeats a cursor.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, McpError> {
        self.core.all_pages::<ListResourcesResult>().await
    }

    /// Returns one page of resources; the first one without a cursor.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn list_resources_page(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListResourcesResult, McpError> {
        self.core.page(cursor).await
    }

    /// Returns all resource templates.
    ///
    /// # Errors
    /// Fails if a page fails, or if the server repeats a cursor.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, McpError> {
        self.core.all_pages::<ListResourceTemplatesResult>().await
    }

    /// Returns one page of resource templates; the first one without a cursor.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn list_resource_templates_page(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListResourceTemplatesResult, McpError> {
        self.core.page(cursor).await
    }

    /// Returns the contents of a resource. If the server allows it, they may come from the cache.
    ///
    /// # Errors
    /// Fails if the call fails. [`read_resource_call`](Self::read_resource_call) has options.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, McpError> {
        let (core, method) = (&self.core, methods::READ_RESOURCE);
        if let Some(cached) = core.inbox.cache.fresh(method, uri) {
            return decoded(method, &cached);
        }
        let epoch = core.inbox.cache.epoch();
        let call = self.read_resource_call(uri);
        let (result, rounds) = core.request_in_rounds(method, call.params?, &call.options).await?;
        let contents: ReadResourceResult = decoded(method, &result)?;
        // A result that depends on input is not that of the URI alone (2026-07-28, caching, "Cache Key").
        if rounds == 0 {
            core.inbox.cache.keep(method, uri, &result, &contents.cache, epoch);
        }
        Ok(contents)
    }

    /// Reads a resource with options, and without the cache.
    pub fn read_resource_call(&self, uri: &str) -> McpCall<ReadResourceResult> {
        let params = ReadResourceParams::new(uri);
        McpCall::new(self.core.clone(), methods::READ_RESOURCE, &params).named(uri)
    }

    /// Completes an argument of a prompt or resource template. `known` has the arguments that are already set.
    pub fn complete(
        &self,
        reference: Reference,
        argument: &str,
        value: &str,
        known: BTreeMap<String, String>,
    ) -> McpCall<CompleteResult> {
        let mut params = CompleteParams::new(reference, argument, value);
        if !known.is_empty() {
            params = params.with_context(known);
        }
        McpCall::new(self.core.clone(), methods::COMPLETE, &params)
    }

    /// Checks that the server responds. Modern revisions have no ping, so this asks what the server is.
    ///
    /// # Errors
    /// Fails if the server does not respond.
    pub async fn ping(&self) -> Result<(), McpError> {
        if self.core.is_modern() {
            return self.request::<EmptyResult>(methods::DISCOVER, ()).await.map(drop);
        }
        self.request::<EmptyResult>(methods::PING, ()).await.map(drop)
    }

    /// Asks for log messages of this level and above. A modern server gets the level with each request, and sends the
    /// messages of that request. See [`McpClientBuilder::on_log`].
    ///
    /// # Errors
    /// Fails if a legacy server refuses it.
    pub async fn set_level(&self, level: LoggingLevel) -> Result<(), McpError> {
        *locked(&self.core.log_level) = Some(level);
        if self.core.is_modern() {
            return Ok(());
        }
        let params = SetLevelParams::new(level);
        self.request::<EmptyResult>(methods::SET_LEVEL, params).await.map(drop)
    }

    /// Subscribes to a resource of a legacy server. [`listen`](Self::listen) works with every server.
    ///
    /// # Errors
    /// Fails if the server has a modern revision, or refuses it.
    pub async fn subscribe(&self, uri: &str) -> Result<(), McpError> {
        self.legacy_only(methods::SUBSCRIBE)?;
        let params = SubscribeParams::new(uri);
        self.request::<EmptyResult>(methods::SUBSCRIBE, params).await.map(drop)
    }

    /// Ends the subscription to a resource of a legacy server.
    ///
    /// # Errors
    /// Fails if the server has a modern revision, or refuses it.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), McpError> {
        self.legacy_only(methods::UNSUBSCRIBE)?;
        let params = UnsubscribeParams::new(uri);
        self.request::<EmptyResult>(methods::UNSUBSCRIBE, params).await.map(drop)
    }

    /// Passes a request on. Its result keeps its members as they are. `name` is what HTTP repeats in a header.
    pub(crate) fn forward(
        &self,
        method: &'static str,
        name: Option<&str>,
        params: &impl Serialize,
        meta: Meta,
    ) -> McpCall<BTreeMap<String, RawJson>> {
        let call = McpCall::new(self.core.clone(), method, params).meta(meta);
        match name {
            Some(name) => call.named(name),
            None => call,
        }
    }

    /// Whether the connection has ended, so that no call can succeed.
    pub(crate) fn is_closed(&self) -> bool {
        self.core.wire.closed().now_or_never().is_some()
    }

    fn legacy_only(&self, method: &str) -> Result<(), McpError> {
        match self.core.is_modern() {
            true => Err(McpError::Unsupported(format!(
                "`{method}` does not exist in revision {}; use `McpClient::listen`",
                self.revision()
            ))),
            false => Ok(()),
        }
    }

    /// Replaces the roots. A legacy server is notified of the change; a modern server asks when it needs them.
    ///
    /// The client declares the capability when it connects. With a legacy server, also set
    /// [`McpClientBuilder::roots`] before connecting.
    ///
    /// # Errors
    /// Fails if the connection fails.
    pub async fn set_roots(&self, roots: Vec<Root>) -> Result<(), McpError> {
        self.core.inbox.handlers.set_roots(roots);
        match self.core.is_modern() {
            true => Ok(()),
            false => self.core.notify(methods::ROOTS_CHANGED, None).await,
        }
    }

    /// Closes the connection, for every clone, and waits until it is closed. A child process has exited by then, and
    /// an HTTP session is deleted.
    pub async fn close(self) {
        self.core.inbox.tasks.clear();
        self.core.wire.close().await;
    }
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
