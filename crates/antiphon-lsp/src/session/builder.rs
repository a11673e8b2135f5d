//! The settings of a session, and its start.

use std::io;
use std::path::Path;
use std::time::Duration;

use antiphon::transport::Transport;
use antiphon::{
    BoxFuture, CallError, Client, ClientBuilder, Dialect, Endpoint, EndpointError, Limits, Peer,
};

use super::handler::SessionHandler;
use super::{Received, ServerSession, StartError};
use crate::documents::PositionEncoding;
use crate::single_connection::single_connection;
use crate::types::{
    ClientCapabilities, ClientInfo, InitializeParams, InitializeResult, InitializedParams, LspAny,
    WorkspaceFolder,
};
use crate::{Editor, LanguageClient, LanguageService, RemoteServer, file_path, file_uri};

/// A builder for a [`ServerSession`]: the params of `initialize`, limits and timeouts.
///
/// ```no_run
/// use antiphon_lsp::documents::PositionEncoding;
/// use antiphon_lsp::{LanguageClient, ServerSession};
/// # struct Headless;
/// # impl LanguageClient for Headless {}
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let session = ServerSession::builder()
///     .client_info("my-editor", Some("1.0"))
///     .root("/home/me/project")?
///     .initialization_options(serde_json::json!({"fallbackFlags": ["-std=c99"]}))
///     .encodings(&[PositionEncoding::Utf8, PositionEncoding::Utf16])
///     .start("exec+header:clangd --log=error", Headless)
///     .await?;
/// # drop(session);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a session starts when `start` is awaited"]
pub struct SessionBuilder {
    params: InitializeParams,
    encodings: Vec<PositionEncoding>,
    limits: Limits,
    initialize_timeout: Duration,
    pub(super) shutdown_timeout: Duration,
}

impl Default for SessionBuilder {
    fn default() -> Self {
        Self {
            params: InitializeParams::default(),
            encodings: vec![
                PositionEncoding::Utf8,
                PositionEncoding::Utf16,
                PositionEncoding::Utf32,
            ],
            limits: Dialect::lsp().limits(),
            initialize_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}

impl SessionBuilder {
    /// Sets the params of `initialize`. Call this first, because other methods of the builder change parts of the
    /// params.
    ///
    /// The session adds its own capabilities; see [`capabilities`](Self::capabilities). If it starts the server, it
    /// also sets `processId` to the id of this process.
    pub fn params(mut self, params: InitializeParams) -> Self {
        self.params = params;
        self
    }

    /// Sets the name and the version of the editor.
    pub fn client_info(mut self, name: &str, version: Option<&str>) -> Self {
        self.params.client_info =
            Some(ClientInfo { name: name.to_owned(), version: version.map(str::to_owned) });
        self
    }

    /// Adds a folder to the workspace. The first folder is also the `rootUri`, for older servers.
    ///
    /// # Errors
    /// Fails if the path cannot be converted to a URI; see [`file_uri`].
    #[allow(deprecated, reason = "older servers read `rootUri` only")]
    pub fn root(mut self, folder: impl AsRef<Path>) -> io::Result<Self> {
        let uri = file_uri(&folder)?;
        // Without `..`, so the last segment is a name.
        let folder = file_path(&uri).unwrap_or_else(|| folder.as_ref().to_owned());
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
        let added = WorkspaceFolder { uri: uri.clone(), name: name.into_owned() };
        let folders = &mut self.params.workspace_folders_initialize_params.workspace_folders;
        let mut all = match folders.take() {
            Some(crate::types::WorkspaceFolders::WorkspaceFolderList(all)) => all,
            _ => Vec::new(),
        };
        all.push(added);
        *folders = Some(all.into());
        self.params.root_uri.get_or_insert(uri);
        Ok(self)
    }

    /// Sets the `initializationOptions`, which the documentation of the server describes.
    pub fn initialization_options(mut self, options: LspAny) -> Self {
        self.params.initialization_options = Some(options);
        self
    }

    /// Sets the capabilities that your [`LanguageClient`] implements. The session adds its own capabilities unless you
    /// have set them: position encodings, `didSave`, versions of diagnostics, workspace folders, and progress that the
    /// server creates.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.params.capabilities = capabilities;
        self
    }

    /// Sets the offered position encodings, sorted by preference. The default is UTF-8, UTF-16, UTF-32. The server
    /// chooses one; every server supports UTF-16.
    pub fn encodings(mut self, encodings: &[PositionEncoding]) -> Self {
        self.encodings = encodings.to_vec();
        self
    }

    /// Sets the limits of the connection. The default is [`Dialect::limits`] of [`Dialect::lsp`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the timeout of `initialize`: 60 seconds by default.
    pub fn initialize_timeout(mut self, timeout: Duration) -> Self {
        self.initialize_timeout = timeout;
        self
    }

    /// Sets the timeout of `shutdown`: 5 seconds by default. The wait after `exit` has the same timeout. See
    /// [`ServerSession::shutdown`].
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Starts a server or connects to it, and does the handshake. `client` handles the requests and notifications of
    /// the server.
    ///
    /// `exec:COMMAND` starts a process. `tcp://HOST:PORT` and `unix:PATH` connect to a running server. The default
    /// framing is `+header`: `exec:clangd` means `exec+header:clangd`.
    ///
    /// # Errors
    /// See [`StartError`]. On an error, the process of the server is stopped.
    ///
    /// # Cancel safety
    /// If the future is dropped, the process of the server is stopped; see [`ServerSession`].
    pub async fn start(
        self,
        endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
        client: impl LanguageClient,
    ) -> Result<ServerSession, StartError> {
        self.start_with(endpoint, |_| client).await
    }

    /// Like [`start`](Self::start), with a client that calls the server: the closure receives the handle of the server,
    /// and returns the [`LanguageClient`]. The handle does not keep the connection open.
    ///
    /// See [`LanguageClient`] for calls in the handlers of notifications.
    ///
    /// ```no_run
    /// use antiphon::{Context, ErrorObject};
    /// use antiphon_lsp::types::WorkspaceDiagnosticParams;
    /// use antiphon_lsp::{LanguageClient, RemoteServer, ServerSession};
    ///
    /// struct Headless {
    ///     server: RemoteServer,
    /// }
    ///
    /// impl LanguageClient for Headless {
    ///     async fn workspace_diagnostic_refresh(&self, cx: Context) -> Result<(), ErrorObject> {
    ///         let server = self.server.clone();
    ///         let pull = async move {
    ///             let found = server.workspace_diagnostic(WorkspaceDiagnosticParams::default()).await;
    ///             println!("{found:?}");
    ///         };
    ///         Ok(cx.spawn(pull)?)
    ///     }
    /// }
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let session = ServerSession::builder()
    ///     .start_with("exec:clangd", |server| Headless { server })
    ///     .await?;
    /// # drop(session);
    /// # Ok(()) }
    /// ```
    pub async fn start_with<C: LanguageClient>(
        self,
        endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
        make_client: impl FnOnce(RemoteServer) -> C + Send + 'static,
    ) -> Result<ServerSession, StartError> {
        let endpoint = endpoint.try_into().map_err(|error| StartError::Endpoint(error.into()))?;
        let (server, is_child) = (endpoint.to_string(), matches!(endpoint, Endpoint::Exec { .. }));
        let (builder, received) = self.connection(make_client);
        let connected = builder.connect(&endpoint).await;
        let connected =
            connected.map_err(|source| StartError::connect(server.clone(), source, is_child))?;
        self.handshake(server, connected, received, is_child).await
    }

    /// Like [`start`](Self::start), with a server in this process. It is meant for tests of a language server.
    ///
    /// ```
    /// use antiphon_lsp::{LanguageClient, ServerSession};
    /// # use antiphon::{Context, ErrorObject};
    /// # use antiphon_lsp::{Editor, LanguageServer};
    /// # use antiphon_lsp::types::{InitializeParams, InitializeResult};
    /// # struct Backend { editor: Editor }
    /// # impl LanguageServer for Backend {
    /// #     async fn initialize(&self, _: InitializeParams, _: Context) -> Result<InitializeResult, ErrorObject> {
    /// #         Ok(InitializeResult::default())
    /// #     }
    /// # }
    /// # struct Headless;
    /// # impl LanguageClient for Headless {}
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let session =
    ///     ServerSession::builder().in_process(|editor| Backend { editor }, Headless).await?;
    /// session.shutdown().await?;
    /// # Ok(()) }
    /// ```
    pub async fn in_process<S: Into<LanguageService>>(
        self,
        make: impl FnOnce(Editor) -> S + Send + 'static,
        client: impl LanguageClient,
    ) -> Result<ServerSession, StartError> {
        self.in_process_with(make, |_| client).await
    }

    /// Like [`start_with`](Self::start_with), with a server in this process.
    pub async fn in_process_with<S: Into<LanguageService>, C: LanguageClient>(
        self,
        make: impl FnOnce(Editor) -> S + Send + 'static,
        make_client: impl FnOnce(RemoteServer) -> C + Send + 'static,
    ) -> Result<ServerSession, StartError> {
        let service = single_connection(move |editor| LanguageService::for_peer(editor, make));
        let (builder, received) = self.connection(make_client);
        let connected = builder.in_process(service);
        self.handshake("the server in this process".to_owned(), connected, received, false).await
    }

    /// Like [`start`](Self::start), over a transport that the application opened.
    pub async fn over(
        self,
        transport: impl Transport,
        client: impl LanguageClient,
    ) -> Result<ServerSession, StartError> {
        self.over_with(transport, |_| client).await
    }

    /// Like [`start_with`](Self::start_with), over a transport that the application opened.
    pub async fn over_with<C: LanguageClient>(
        self,
        transport: impl Transport,
        make_client: impl FnOnce(RemoteServer) -> C + Send + 'static,
    ) -> Result<ServerSession, StartError> {
        let (builder, received) = self.connection(make_client);
        let connected = builder.over(transport);
        self.handshake("the server".to_owned(), connected, received, false).await
    }

    fn connection<C: LanguageClient>(
        &self,
        make_client: impl FnOnce(RemoteServer) -> C + Send + 'static,
    ) -> (ClientBuilder, Received) {
        let received = Received::default();
        let folders = self.params.workspace_folders_initialize_params.workspace_folders.clone();
        let of_handler = received.clone();
        let handler = single_connection(move |server| {
            SessionHandler::new(make_client(RemoteServer::from(server)), folders, of_handler)
        });
        let builder = Client::builder().dialect(Dialect::lsp()).limits(self.limits.clone());
        (builder.handler(handler), received)
    }

    /// The future is boxed, because the params of `initialize` make it large.
    fn handshake(
        mut self,
        endpoint: String,
        client: Client,
        received: Received,
        is_child: bool,
    ) -> BoxFuture<'static, Result<ServerSession, StartError>> {
        self.announce(is_child);
        let remote = RemoteServer::new(client.clone());
        Box::pin(async move {
            let session = match self.initialize(&remote).await {
                Ok((result, peer)) => {
                    ServerSession::new(&self, endpoint, remote, peer, received, result)
                }
                Err(error) => Err(StartError::handshake(endpoint, error)),
            };
            if session.is_err() {
                client.close().await;
            }
            session
        })
    }

    async fn initialize(
        &self,
        server: &RemoteServer,
    ) -> Result<(InitializeResult, Peer), CallError> {
        let result = server.initialize(self.params.clone());
        let result = result.timeout(self.initialize_timeout).await?;
        server.initialized(InitializedParams {}).await?;
        // The protocol needs a connection on which the server can call the client.
        let peer = server.peer().ok_or(CallError::CannotCallBack("this transport"))?;
        Ok((result, peer))
    }

    /// Adds the capabilities and the process id of the session to the params.
    fn announce(&mut self, is_child: bool) {
        if is_child {
            self.params.process_id = i32::try_from(std::process::id()).ok();
        }
        let capabilities = &mut self.params.capabilities;
        let general = capabilities.general.get_or_insert_default();
        general
            .position_encodings
            .get_or_insert_with(|| self.encodings.iter().map(|&unit| unit.into()).collect());
        let documents = capabilities.text_document.get_or_insert_default();
        documents.synchronization.get_or_insert_default().did_save.get_or_insert(true);
        documents.publish_diagnostics.get_or_insert_default().version_support.get_or_insert(true);
        let workspace = capabilities.workspace.get_or_insert_default();
        workspace.workspace_folders.get_or_insert(true);
        capabilities.window.get_or_insert_default().work_done_progress.get_or_insert(true);
    }
}
