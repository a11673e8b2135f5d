//! One upstream of a bridge: how it is reached, and which names it has.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use antiphon::BoxFuture;

use super::BridgeError;
use super::names::NameRules;
use super::open_calls::{OpenCalls, without_call};
use super::questions::ask_clients;
use crate::client::{McpClient, McpClientBuilder, McpError};
use crate::types::InitializeParams;

/// How long an upstream may take to start, and to list what it offers. `npx` may have to install it first.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Connects to an upstream with a builder that has the handlers of the bridge.
#[derive(Clone)]
pub struct Connect(Arc<ConnectFn>);

type ConnectFn =
    dyn Fn(McpClientBuilder) -> BoxFuture<'static, Result<McpClient, McpError>> + Send + Sync;

impl Connect {
    /// Creates a value from a function, for example one that adds headers or credentials to the builder.
    pub fn new<F>(connect: impl Fn(McpClientBuilder) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<McpClient, McpError>> + Send + 'static,
    {
        Self(Arc::new(move |builder| Box::pin(connect(builder))))
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connect")
    }
}

/// A server that a bridge offers: its endpoint, and the names of its tools and prompts at the bridge.
///
/// ```
/// use antiphon_mcp::bridge::Upstream;
///
/// let files = Upstream::new("exec:npx -y @modelcontextprotocol/server-filesystem /tmp")
///     .prefix("fs_")
///     .deny(["write_*", "edit_*"]);
/// ```
#[derive(Clone, Debug)]
pub struct Upstream {
    pub(super) endpoint: String,
    pub(super) names: NameRules,
    connect: Connect,
    pub(super) timeout: Duration,
    /// The client that the connection belongs to. Without one, the upstream sees the name of the bridge.
    client: Option<Arc<InitializeParams>>,
}

impl Upstream {
    /// Creates an upstream: `exec:COMMAND`, `http://HOST/PATH`, or another endpoint of the library.
    pub fn new(endpoint: impl Into<String>) -> Self {
        let endpoint = endpoint.into();
        let target = endpoint.clone();
        let connect = Connect::new(move |builder| {
            let target = target.clone();
            async move { builder.connect(target.as_str()).await }
        });
        let (names, timeout) = (NameRules::default(), DEFAULT_TIMEOUT);
        Self { endpoint, names, connect, timeout, client: None }
    }

    /// Sets how the bridge connects, for example with credentials. The endpoint is then only a name for errors.
    #[must_use]
    pub fn connect_with(mut self, connect: Connect) -> Self {
        self.connect = connect;
        self
    }

    /// Sets how long connecting may take, and each list of what the upstream offers; 2 minutes by default. Calls have no
    /// timeout here: the clients decide how long they wait.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets which tools and prompts are offered, and under which names.
    #[must_use]
    pub fn names(mut self, names: NameRules) -> Self {
        self.names = names;
        self
    }

    /// Puts a text in front of each name.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        let names = self.names.clone().prefix(prefix);
        self.names(names)
    }

    /// Offers only tools and prompts whose names match one of these patterns, in which `*` stands for any text.
    #[must_use]
    pub fn allow(self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = self.names.clone().allow(patterns);
        self.names(names)
    }

    /// Does not offer tools and prompts whose names match one of these patterns.
    #[must_use]
    pub fn deny(self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = self.names.clone().deny(patterns);
        self.names(names)
    }

    /// Offers a tool or prompt under another name.
    #[must_use]
    pub fn rename(self, name: impl Into<String>, other: impl Into<String>) -> Self {
        let names = self.names.clone().rename(name, other);
        self.names(names)
    }

    /// Connects in the name and with the capabilities of the client of a session.
    pub(super) fn on_behalf_of(mut self, client: Arc<InitializeParams>) -> Self {
        self.client = Some(client);
        self
    }

    /// Whether the connection belongs to a client that has roots.
    pub(super) fn has_roots(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.capabilities.roots.is_some())
    }

    fn builder(&self, calls: &Arc<OpenCalls>) -> McpClientBuilder {
        // The client of the bridge decides how long it waits, and validates what it wants.
        // A connection that is opened again is a new one for the bridge.
        let builder = McpClient::builder().without_timeout().validate(false).reconnect(false);
        let builder = match &self.client {
            Some(client) => builder.client_info(client.client_info.clone()),
            None => builder,
        };
        ask_clients(builder, calls, self.client.as_ref().map(|client| &client.capabilities))
    }

    pub(super) async fn connect(&self, calls: &Arc<OpenCalls>) -> Result<McpClient, McpError> {
        self.within((self.connect.0)(self.builder(calls))).await
    }

    pub(super) async fn within<T>(
        &self,
        response: impl Future<Output = Result<T, McpError>>,
    ) -> Result<T, McpError> {
        match tokio::time::timeout(self.timeout, without_call(response)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(McpError::TimedOut(self.timeout)),
        }
    }

    pub(super) fn failed(&self, source: McpError) -> BridgeError {
        BridgeError::Upstream { upstream: self.endpoint.clone(), source: Box::new(source) }
    }
}
