//! A session with a language server: start, handshake, documents, diagnostics and shutdown.
//!
//! This module implements the editor's side of the protocol. It does not decide how an editor uses a server.
//!
//! Invariant: a [`ServerSession`] exists only between `initialized` and `shutdown`.

mod builder;
mod default_answers;
mod diagnostics;
mod error;
mod handler;
mod open_document;
mod progress_state;
mod server_progress;
mod sync_options;

use std::sync::Arc;
use std::time::Duration;

use antiphon::{CallError, Client, Peer};
use tokio::time::timeout;

pub use self::builder::SessionBuilder;
pub use self::diagnostics::Diagnostics;
use self::diagnostics::DiagnosticsStore;
pub use self::error::{ShutdownError, StartError};
use self::open_document::Workspace;
pub use self::open_document::{ApplyError, OpenDocument, OpenError};
pub use self::progress_state::ProgressState;
use self::server_progress::CreatedProgress;
pub use self::server_progress::{ServerProgress, ServerProgressStream};
use self::sync_options::SyncOptions;
use crate::RemoteServer;
use crate::documents::PositionEncoding;
use crate::file_uri::DocumentKey;
use crate::types::{
    InitializeResult, LanguageKind, PublishDiagnosticsParams, ServerCapabilities, ServerInfo, Uri,
};

/// A session with an initialized language server.
///
/// [`server`](Self::server) sends requests and notifications. [`open`](Self::open) opens a document, and
/// [`diagnostics`](Self::diagnostics) is a stream of the diagnostics of all documents.
///
/// The [`LanguageClient`](crate::LanguageClient) of the session handles the requests and notifications of the server.
/// If it does not implement a request (-32601), the session responds like a client without a user interface. It returns
/// `null` for each item of `workspace/configuration`, and the workspace folders for `workspace/workspaceFolders`. It
/// rejects edits and `window/showDocument`, and chooses nothing in dialogs. It accepts registrations,
/// `window/workDoneProgress/create`, and the `refresh` requests of the protocol.
///
/// End a session with [`shutdown`](Self::shutdown). If you drop the session and all clones of its [`RemoteServer`], the
/// connection closes. A process that the session started then has two seconds to end. After that it gets SIGTERM, and
/// two seconds later it is killed.
///
/// ```no_run
/// use antiphon_lsp::types::{
///     HoverParams, Position, TextDocumentIdentifier, TextDocumentPositionParams,
/// };
/// use antiphon_lsp::{LanguageClient, ServerSession};
///
/// struct Headless;
///
/// impl LanguageClient for Headless {}
///
/// # async fn example(document: TextDocumentIdentifier) -> Result<(), Box<dyn std::error::Error>> {
/// let session =
///     ServerSession::builder().root(".")?.start("exec+header:clangd", Headless).await?;
/// if session.capabilities().hover_provider.is_some() {
///     let at = TextDocumentPositionParams::new(document, Position::new(3, 7));
///     println!("{:?}", session.server().hover(HoverParams::new(Default::default(), at)).await?);
/// }
/// session.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ServerSession {
    server: RemoteServer,
    /// The endpoint of the server, for error messages.
    endpoint: String,
    initialized: InitializeResult,
    workspace: Workspace,
    progress: Arc<CreatedProgress>,
    shutdown_timeout: Duration,
}

/// The diagnostics and progress that the server has sent.
#[derive(Clone, Debug, Default)]
struct Received {
    diagnostics: Arc<DiagnosticsStore>,
    progress: Arc<CreatedProgress>,
}

impl ServerSession {
    /// Returns the settings of a new session.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// Creates the session after the handshake.
    fn new(
        settings: &SessionBuilder,
        endpoint: String,
        server: RemoteServer,
        peer: Peer,
        received: Received,
        initialized: InitializeResult,
    ) -> Result<Self, StartError> {
        let encoding = match &initialized.capabilities.position_encoding {
            None => PositionEncoding::Utf16,
            Some(chosen) => match PositionEncoding::of(chosen) {
                Some(encoding) => encoding,
                None => {
                    let encoding = chosen.as_str().to_owned();
                    return Err(StartError::UnknownEncoding { server: endpoint, encoding });
                }
            },
        };
        let sync = SyncOptions::of(&initialized.capabilities);
        let Received { diagnostics, progress } = received;
        let workspace = Workspace { peer, sync, encoding, diagnostics, open: Arc::default() };
        let shutdown_timeout = settings.shutdown_timeout;
        Ok(Self { server, endpoint, initialized, workspace, progress, shutdown_timeout })
    }

    /// Returns the handle of the server, which sends requests and notifications. A clone keeps the connection open.
    pub fn server(&self) -> &RemoteServer {
        &self.server
    }

    /// Returns the capabilities of the server.
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.initialized.capabilities
    }

    /// Returns the name and the version of the server, if it sends them.
    pub fn server_info(&self) -> Option<&ServerInfo> {
        self.initialized.server_info.as_ref()
    }

    /// Returns the position encoding of this session.
    pub fn encoding(&self) -> PositionEncoding {
        self.workspace.encoding
    }

    /// Opens a document with this text, and sends `didOpen` if the server wants it. Reads no file.
    ///
    /// # Errors
    /// Fails if the document is already open, or if the connection has ended.
    ///
    /// ```
    /// use antiphon_lsp::{ServerSession, file_uri};
    ///
    /// # async fn example(session: ServerSession) -> Result<(), Box<dyn std::error::Error>> {
    /// let path = "src/main.rs";
    /// let text = std::fs::read_to_string(path)?;
    /// let document = session.open(file_uri(path)?, "rust", text).await?;
    /// for diagnostic in document.diagnostics().await?.diagnostics {
    ///     println!("{}: {:?}", diagnostic.range.start.line + 1, diagnostic.message);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn open(
        &self,
        uri: impl Into<Uri>,
        language: impl Into<LanguageKind>,
        text: impl Into<String>,
    ) -> Result<OpenDocument, OpenError> {
        let workspace = self.workspace.clone();
        OpenDocument::open(workspace, uri.into(), language.into(), text.into()).await
    }

    /// Returns a stream of the diagnostics that the server publishes for all documents. It starts with those that have
    /// already arrived. [`OpenDocument::diagnostics`] waits for the diagnostics of one text.
    ///
    /// A URI is as the server wrote it, so compare it with [`OpenDocument::has_uri`].
    ///
    /// ```
    /// use antiphon_lsp::ServerSession;
    /// use futures_util::StreamExt as _;
    ///
    /// # async fn example(session: ServerSession) {
    /// let mut diagnostics = session.diagnostics();
    /// while let Some(published) = diagnostics.next().await {
    ///     println!("{}: {} problems", published.uri.0, published.diagnostics.len());
    /// }
    /// # }
    /// ```
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics::new(self.workspace.diagnostics.clone(), self.workspace.peer.clone())
    }

    /// Returns the newest diagnostics of a document; `None` if the server has published none.
    pub fn diagnostics_of(&self, document: &Uri) -> Option<PublishDiagnosticsParams> {
        self.workspace.diagnostics.of(&DocumentKey::new(document))
    }

    /// Returns a stream of the progress that the server creates with `window/workDoneProgress/create`. Progress that
    /// ends before the stream exists is not lost. The [`LanguageClient`](crate::LanguageClient) receives the same
    /// reports.
    ///
    /// It does not contain the progress of requests. For that, use
    /// [`Call::with_progress`](antiphon::Call::with_progress) with [`WorkDoneReport`](crate::WorkDoneReport), or
    /// [`RemoteServer::partial_results_with_progress`].
    ///
    /// ```
    /// use antiphon_lsp::ServerSession;
    /// use futures_util::StreamExt as _;
    ///
    /// /// Waits until the server has finished its work after the start.
    /// async fn wait_for_the_index(session: &ServerSession) {
    ///     let mut all = session.progress();
    ///     while let Some(mut progress) = all.next().await {
    ///         while let Some(state) = progress.next().await {
    ///             println!("{} {:?}", state.title, state.percentage);
    ///             if state.ended && state.title == "indexing" {
    ///                 return;
    ///             }
    ///         }
    ///     }
    /// }
    /// ```
    pub fn progress(&self) -> ServerProgressStream {
        ServerProgressStream::new(self.progress.clone(), self.workspace.peer.clone())
    }

    /// Ends the server: sends `shutdown`, waits for the response, sends `exit`, and waits until the server closes the
    /// connection. For an `exec:` endpoint, the process has exited on return.
    ///
    /// Both waits have the [timeout](SessionBuilder::shutdown_timeout) of the session. If a process still runs after
    /// that, its stdin is closed. Two seconds later it gets SIGTERM, and two more seconds later it is killed.
    ///
    /// # Errors
    /// See [`ShutdownError`]. An exit status other than 0 is an error. If the process exits more than 200 ms after it
    /// closes stdout, its status is not checked.
    ///
    /// # Cancel safety
    /// If the future is dropped, the session is dropped too.
    pub async fn shutdown(self) -> Result<(), ShutdownError> {
        let asked = self.server.shutdown().timeout(self.shutdown_timeout).await;
        let exited = self.exit().await;
        // Waits for the process, and kills it if necessary.
        self.client().clone().close().await;
        match asked {
            // Some servers respond to `shutdown` with a value.
            Ok(()) | Err(CallError::Decode { .. }) => exited,
            Err(source) => Err(ShutdownError::Shutdown { server: self.endpoint, source }),
        }
    }

    async fn exit(&self) -> Result<(), ShutdownError> {
        let (server, limit) = (|| self.endpoint.clone(), self.shutdown_timeout);
        let peer = &self.workspace.peer;
        let ended = async {
            // If the server has already ended, `exit` is not needed. The reason of the end is read below.
            let _ = self.server.exit().await;
            peer.closed().await
        };
        match timeout(limit, ended).await {
            Ok(reason) if reason.is_clean() => Ok(()),
            Ok(source) => Err(ShutdownError::Failed { server: server(), source }),
            Err(_) => Err(ShutdownError::StillRunning { server: server(), limit }),
        }
    }

    fn client(&self) -> &Client {
        self.server.client()
    }
}
