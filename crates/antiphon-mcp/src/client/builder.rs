//! The settings of a client, and how it connects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use antiphon::http::{HeaderMap, HeaderName, HeaderValue};
use antiphon::transport::Transport;
#[cfg(feature = "tls")]
use antiphon::transport::tls::TlsClient;
use antiphon::{ClientBuilder, Endpoint, ErrorObject, Limits};

use super::core::Core;
use super::credentials::Credentials;
use super::duplex::Duplex;
use super::handlers::{Handlers, erased};
use super::handshake::ServerEra;
use super::http::{HttpSettings, HttpSse, StreamableHttp};
use super::inbox::{Inbox, ServerNotification};
use super::settings::Settings;
use super::{McpClient, McpError};
use crate::types::tasks::EXTENSION;
use crate::types::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    Implementation, JsonObject, LoggingMessageParams, Revision, Root,
};

/// The settings of a client. [`connect`](Self::connect) opens the connection.
///
/// ```no_run
/// use antiphon_mcp::client::{McpClient, McpError};
/// use antiphon_mcp::types::{ElicitResult, Implementation};
/// use std::time::Duration;
///
/// # async fn example() -> Result<McpClient, McpError> {
/// McpClient::builder()
///     .client_info(Implementation::new("my-agent", "1.0"))
///     .timeout(Duration::from_secs(30))
///     .on_elicit(|question| async move {
///         println!("{}", question.message());
///         Ok(ElicitResult::decline())
///     })
///     .connect("https://example.org/mcp")
///     .await
/// # }
/// ```
#[derive(Default)]
#[must_use = "a builder connects only when `connect` is awaited"]
pub struct McpClientBuilder {
    settings: Settings,
    handlers: Handlers,
    client: ClientBuilder,
    credentials: Option<Arc<dyn Credentials>>,
    headers: HeaderMap,
    limits: Limits,
    #[cfg(feature = "tls")]
    tls: TlsClient,
}

impl McpClientBuilder {
    /// Sets the name of the client, which servers see.
    pub fn client_info(mut self, info: Implementation) -> Self {
        self.settings.info = info;
        self
    }

    /// Sets capabilities of the client. Handlers add theirs.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.settings.capabilities = capabilities;
        self
    }

    /// Answers questions of servers to the user, by a form or by a URL.
    pub fn on_elicit<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(ElicitParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, ErrorObject>> + Send + 'static,
    {
        let handler = erased(handler);
        self.handlers.elicit_form = Some(handler.clone());
        self.handlers.elicit_url = Some(handler);
        self
    }

    /// Answers questions of servers to the user by a form, but not by a URL.
    pub fn on_elicit_form<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(ElicitParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, ErrorObject>> + Send + 'static,
    {
        self.handlers.elicit_form = Some(erased(handler));
        self
    }

    /// Answers questions of servers to the user's model. The client does not offer to let the model call tools.
    pub fn on_sample<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(CreateMessageParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, ErrorObject>> + Send + 'static,
    {
        self.handlers.sample = Some(erased(handler));
        self
    }

    /// Like [`on_sample`](Self::on_sample), for a handler that lets the model call tools.
    pub fn on_sample_with_tools<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(CreateMessageParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, ErrorObject>> + Send + 'static,
    {
        self.handlers.samples_with_tools = true;
        self.on_sample(handler)
    }

    /// Lets tool calls become tasks. A modern server decides which calls do (the extension
    /// `io.modelcontextprotocol/tasks`). With a server of 2025-11-25, the client requests a task if the tool allows tasks.
    /// A call then waits for the end of its task, and dropping it cancels the task. A timeout of the call itself limits
    /// the whole task.
    ///
    /// A server of 2025-11-25 may also ask its questions as tasks. Without this setting, a tool that requires tasks is
    /// still called as a task.
    pub fn tasks(mut self) -> Self {
        let capabilities = std::mem::take(&mut self.settings.capabilities);
        self.settings.capabilities = capabilities.with_extension(EXTENSION, JsonObject::new());
        self
    }

    /// Asks the application for the roots each time that a server wants to know them. Takes precedence over
    /// [`roots`](Self::roots).
    pub fn on_roots<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Root>, ErrorObject>> + Send + 'static,
    {
        self.handlers.ask_roots = Some(erased(move |()| handler()));
        self
    }

    /// Sets the directories that servers may use. [`McpClient::set_roots`] replaces them later.
    pub fn roots(self, roots: Vec<Root>) -> Self {
        self.handlers.set_roots(roots);
        self
    }

    /// Receives log messages of the server. The function must not block.
    pub fn on_log(
        mut self,
        receive: impl Fn(LoggingMessageParams) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.log = Some(Arc::new(receive));
        self
    }

    /// Receives notifications of the server that are not part of a call. The function must not block.
    /// [`McpClient::listen`] returns them as a stream.
    pub fn on_notification(
        mut self,
        receive: impl Fn(ServerNotification) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.notified = Some(Arc::new(receive));
        self
    }

    /// Uses only this revision, and fails if the server does not support it.
    pub fn revision(mut self, revision: Revision) -> Self {
        self.settings.revision = Some(revision);
        self
    }

    /// Assumes that the server has the era that an earlier client has detected, to save the probe. If it has not, the
    /// client detects the era again.
    pub fn assume(mut self, era: ServerEra) -> Self {
        self.settings.assumed = Some(era);
        self
    }

    /// Sets the timeout of each call that has none; 60 seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// Sets no timeout: a call waits for as long as the connection is open.
    pub fn without_timeout(mut self) -> Self {
        self.settings.timeout = None;
        self
    }

    /// Sets whether a lost connection is opened again; true by default. A process is then started again. HTTP needs no
    /// such connection, and a transport of [`over`](Self::over) cannot be opened again.
    ///
    /// The next call opens the connection; a [`Subscription`](super::Subscription) does so at once. A call that was not
    /// sent before the loss is sent on the new connection. A call that the server may have executed fails.
    pub fn reconnect(mut self, reconnects: bool) -> Self {
        self.settings.reconnects = reconnects;
        self
    }

    /// Sets how long the server may take to answer the probe for modern revisions; 5 seconds by default. A server that
    /// takes longer is treated as a legacy one.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.settings.probe_timeout = timeout;
        self
    }

    /// Sets how often a modern server may ask for input within one call; 16 by default.
    pub fn max_input_rounds(mut self, rounds: usize) -> Self {
        self.settings.input_rounds = rounds;
        self
    }

    /// Sets whether arguments and results are checked against the schemas of a tool, and answers of the user against the
    /// form of the server; true by default.
    pub fn validate(mut self, validates: bool) -> Self {
        self.settings.validates = validates;
        self.handlers.skips_validation = !validates;
        self
    }

    /// Sets the limits of messages and connections.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.client = self.client.limits(limits.clone());
        self.limits = limits;
        self
    }

    /// Sets the source of access tokens for HTTP.
    pub fn credentials(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    /// Adds a header to each HTTP request, or to the one that opens a WebSocket.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name.clone(), value.clone());
        self.client = self.client.header(name, value);
        self
    }

    /// Sets the trusted certificates and the client certificate for `https://`, `wss://` and `tls://`. By default, the
    /// certificate authorities of the system are trusted.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: impl Into<TlsClient>) -> Self {
        self.tls = tls.into();
        self.client = self.client.tls(self.tls.clone());
        self
    }

    /// Connects to an endpoint, given as a value or as text, and detects the revision of the server.
    ///
    /// # Errors
    /// Fails if the text is not an endpoint, if the server cannot be reached, or if it has no revision in common with
    /// the client.
    pub async fn connect<E>(self, endpoint: E) -> Result<McpClient, McpError>
    where
        E: TryInto<Endpoint, Error: Into<antiphon::EndpointError>>,
    {
        let endpoint = endpoint.try_into().map_err(Into::into)?;
        match &endpoint {
            Endpoint::Http { .. } => Box::pin(self.connect_http(&endpoint)).await,
            _ => Box::pin(self.connect_duplex(endpoint)).await,
        }
    }

    /// Uses a transport that the application has opened.
    ///
    /// # Errors
    /// Fails if the server has no revision in common with the client.
    pub async fn over(self, transport: impl Transport) -> Result<McpClient, McpError> {
        let inbox = Arc::new(Inbox::new(self.handlers));
        let wire = Duplex::over(self.client, transport, &inbox);
        opened(Core::new(Box::new(wire), inbox, self.settings)).await
    }

    async fn connect_duplex(self, endpoint: Endpoint) -> Result<McpClient, McpError> {
        let inbox = Arc::new(Inbox::new(self.handlers));
        let connect = || {
            let reconnects = self.settings.reconnects;
            Duplex::connect(self.client.clone(), endpoint.clone(), &inbox, reconnects)
        };
        let wire = Box::new(connect().await?);
        match opened(Core::new(wire, inbox.clone(), self.settings.clone())).await {
            // A legacy server may exit when it receives the probe.
            Err(error) if error.is_disconnect() && self.settings.revision.is_none() => {
                tracing::debug!(%error, "the server closed the connection; trying a legacy revision");
                let mut settings = self.settings.clone();
                settings.assumed = Some(ServerEra::new(Revision::LATEST_LEGACY));
                let wire = Box::new(connect().await?);
                opened(Core::new(wire, inbox, settings)).await.map_err(|_| error)
            }
            outcome => outcome,
        }
    }
}

impl McpClientBuilder {
    async fn connect_http(self, endpoint: &Endpoint) -> Result<McpClient, McpError> {
        let uri = endpoint.to_string().parse().map_err(|error| {
            McpError::Unsupported(format!("`{endpoint}` cannot be called: {error}"))
        })?;
        let inbox = Arc::new(Inbox::new(self.handlers));
        let http = HttpSettings {
            uri,
            headers: self.headers,
            limits: self.limits,
            credentials: self.credentials,
            #[cfg(feature = "tls")]
            tls: self.tls,
        };
        let sse = async || {
            let mut settings = self.settings.clone();
            settings.assumed = Some(ServerEra::new(Revision::LATEST_LEGACY));
            let core = Core::new(Box::new(HttpSse::new(&http, &inbox)), inbox.clone(), settings);
            core.initialize(self.settings.revision.unwrap_or(Revision::LATEST_LEGACY)).await?;
            Ok(McpClient { core, http_sse: true })
        };
        if self.settings.assumed.is_some_and(|era| era.http_sse)
            && let Ok(client) = sse().await
        {
            return Ok(client);
        }
        let wire = Box::new(StreamableHttp::new(&http, &inbox));
        let error = match opened(Core::new(wire, inbox.clone(), self.settings.clone())).await {
            Err(error) if may_have_sse(&error, self.settings.revision) => error,
            outcome => return outcome,
        };
        tracing::debug!(%error, "no Streamable HTTP; trying HTTP+SSE");
        sse().await.map_err(|_: McpError| error)
    }
}

/// Whether the server may have only the HTTP+SSE transport (2026-07-28, Streamable HTTP, "Backward Compatibility").
fn may_have_sse(error: &McpError, revision: Option<Revision>) -> bool {
    let is_refused = match error {
        McpError::Status { status, .. } => [400, 404, 405].contains(&status.as_u16()),
        McpError::Rpc(_) => !error.is_modern(),
        _ => false,
    };
    is_refused && !revision.is_some_and(Revision::is_modern)
}

/// Finds out the revision of the server. Closes the connection if that fails.
async fn opened(core: Arc<Core>) -> Result<McpClient, McpError> {
    match core.open().await {
        Ok(()) => {
            core.wire.ready();
            Ok(McpClient { core, http_sse: false })
        }
        Err(error) => {
            core.wire.close().await;
            Err(error.in_handshake())
        }
    }
}

impl fmt::Debug for McpClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClientBuilder")
            .field("info", &self.settings.info)
            .field("has_credentials", &self.credentials.is_some())
            .finish_non_exhaustive()
    }
}
