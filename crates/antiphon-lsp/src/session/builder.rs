//! The settings of a session, and its start.

use std::io;
use std::path::Path;
use std::time::Duration;

use antiphon::transport::Transport;
use antiphon::{
    CallError, Client, ClientBuilder, Dialect, Endpoint, EndpointError, Framing, Limits,
    PerConnection,
};

use super::handler::SessionHandler;
use super::{Heard, ServerSession, StartError};
use crate::documents::PositionEncoding;
use crate::types::{
    ClientCapabilities, ClientInfo, InitializeParams, InitializedParams, LspAny, WorkspaceFolder,
};
use crate::{Editor, LanguageClient, LanguageService, RemoteServer, file_uri, limits};

/// The settings of a [`ServerSession`]: what `initialize` tells the server, and the timeouts.
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
            limits: limits(),
            initialize_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}

impl SessionBuilder {
    /// Sets the params of `initialize`. The settings below change parts of them, so set this first. The
    /// session adds what it does itself; see [`capabilities`](Self::capabilities). It adds the id of this
    /// process for a server that it starts, and none for any other server.
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

    /// Adds a folder to the workspace. The first one is also the `rootUri`, which older servers read.
    ///
    /// # Errors
    /// Fails if the path has no URI; see [`file_uri`].
    #[allow(deprecated, reason = "older servers read `rootUri` only")]
    pub fn root(mut self, folder: impl AsRef<Path>) -> io::Result<Self> {
        let uri = file_uri(&folder)?;
        let name = folder.as_ref().file_name().unwrap_or(folder.as_ref().as_os_str());
        let added = WorkspaceFolder { uri: uri.clone(), name: name.to_string_lossy().into_owned() };
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

    /// Sets what the server's documentation calls initialization options.
    pub fn initialization_options(mut self, options: LspAny) -> Self {
        self.params.initialization_options = Some(options);
        self
    }

    /// Sets the capabilities: what your [`LanguageClient`] implements. The session adds its own, unless you have
    /// set them: units of positions, notifications about saved documents, versions of diagnostics, workspace folders,
    /// and progress that the server creates.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.params.capabilities = capabilities;
        self
    }

    /// Sets the units of positions that are offered, sorted by preference. By default UTF-8, UTF-16, UTF-32.
    /// The server chooses; every server knows UTF-16.
    pub fn encodings(mut self, encodings: &[PositionEncoding]) -> Self {
        self.encodings = encodings.to_vec();
        self
    }

    /// Sets the limits of the connection; [`limits`] by default.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the time that the server has to answer `initialize`: 60 seconds by default.
    pub fn initialize_timeout(mut self, timeout: Duration) -> Self {
        self.initialize_timeout = timeout;
        self
    }

    /// Sets the time that the server has to answer `shutdown`, and again to end after `exit`: 5 seconds by
    /// default. See [`ServerSession::shutdown`].
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Starts the server that the endpoint names, and does the handshake. `client` serves the requests and
    /// notifications of the server.
    ///
    /// `exec+header:COMMAND` starts a process. `tcp+header://HOST:PORT` and `unix+header:PATH` connect to a
    /// server that listens. Without a framing, the endpoint has that of the protocol: `exec:clangd` is
    /// `exec+header:clangd`.
    ///
    /// # Errors
    /// See [`StartError`]. The server is stopped then.
    ///
    /// # Cancel safety
    /// A process of a dropped future is stopped; see [`ServerSession`].
    pub async fn start(
        self,
        endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
        client: impl LanguageClient,
    ) -> Result<ServerSession, StartError> {
        let endpoint = endpoint.try_into().map(with_framing).map_err(|error| {
            let (server, remedy) = (String::new(), "use an endpoint such as exec+header:clangd");
            StartError::Connect {
                server,
                remedy,
                source: Into::<EndpointError>::into(error).into(),
            }
        })?;
        let server = endpoint.to_string();
        let (builder, heard) = self.connection(client);
        let connected = builder.connect(&endpoint).await;
        let connected =
            connected.map_err(|source| StartError::connect(server.clone(), source, &endpoint))?;
        let is_child = matches!(endpoint, Endpoint::Exec { .. });
        self.handshake(server, connected, heard, is_child).await
    }

    /// Like [`start`](Self::start), with a server in this process: for tests of a language server.
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
        make: impl Fn(Editor) -> S + Send + Sync + 'static,
        client: impl LanguageClient,
    ) -> Result<ServerSession, StartError> {
        let service = PerConnection::new(move |_: &_, peer| LanguageService::for_peer(peer, &make));
        let (builder, heard) = self.connection(client);
        let connected = builder.in_process(service);
        self.handshake("the server in this process".to_owned(), connected, heard, false).await
    }

    /// Like [`start`](Self::start), over a transport that the application has opened.
    pub async fn over(
        self,
        transport: impl Transport,
        client: impl LanguageClient,
    ) -> Result<ServerSession, StartError> {
        let (builder, heard) = self.connection(client);
        let connected = builder.over(transport);
        self.handshake("the server".to_owned(), connected, heard, false).await
    }

    fn connection(&self, client: impl LanguageClient) -> (ClientBuilder, Heard) {
        let heard = Heard::default();
        let folders = self.params.workspace_folders_initialize_params.workspace_folders.clone();
        let handler = SessionHandler::new(client, folders, heard.clone());
        let builder = Client::builder().dialect(Dialect::lsp()).limits(self.limits.clone());
        (builder.handler(handler), heard)
    }

    async fn handshake(
        mut self,
        server: String,
        client: Client,
        heard: Heard,
        is_child: bool,
    ) -> Result<ServerSession, StartError> {
        self.announce(is_child);
        let remote = RemoteServer::new(client.clone());
        let shaken = async {
            let result = remote.initialize(self.params.clone());
            let result = result.timeout(self.initialize_timeout).await?;
            remote.initialized(InitializedParams {}).await?;
            // A connection on which the server cannot call is no connection of the protocol.
            let peer = client.peer().ok_or(CallError::CannotCallBack("this transport"))?;
            Ok((result, peer))
        };
        let shaken = shaken.await.map_err(|error| StartError::handshake(server.clone(), error));
        let session = shaken.and_then(|(result, peer)| {
            ServerSession::new(&self, server, remote, peer, heard, result)
        });
        if session.is_err() {
            client.close().await;
        }
        session
    }

    /// Adds to the params what the session does itself.
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

/// The protocol has one framing, so an endpoint need not name it.
fn with_framing(mut endpoint: Endpoint) -> Endpoint {
    if let Endpoint::Tcp { framing, .. }
    | Endpoint::Unix { framing, .. }
    | Endpoint::Exec { framing, .. } = &mut endpoint
    {
        framing.get_or_insert(Framing::Header);
    }
    endpoint
}
