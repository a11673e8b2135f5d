//! A session with a language server: the start, the handshake, and the end.
//!
//! This module knows the lifecycle from the editor's side. It has no opinion on what an editor does with a
//! server.
//!
//! Invariant: a [`ServerSession`] exists only between `initialized` and `shutdown`.

mod builder;
mod error;
mod handler;

use std::time::Duration;

use antiphon::{CallError, Client};
use tokio::time::timeout;

pub use self::builder::SessionBuilder;
pub use self::error::{ShutdownError, StartError};
use crate::RemoteServer;
use crate::documents::PositionEncoding;
use crate::types::{InitializeResult, ServerCapabilities, ServerInfo};

/// A language server that was started, and has answered `initialize`.
///
/// [`server`](Self::server) has the requests and notifications of the protocol. What the server asks and tells
/// goes to the [`LanguageClient`](crate::LanguageClient) that the session was started with.
///
/// End a session with [`shutdown`](Self::shutdown). A session that is dropped closes the connection, as soon as
/// no clone of its [`RemoteServer`] is left. A process that was started then has two seconds to end; after
/// that it gets SIGTERM, and two seconds later it is killed.
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
    /// The server, for error messages.
    name: String,
    initialized: InitializeResult,
    encoding: PositionEncoding,
    shutdown_timeout: Duration,
}

impl ServerSession {
    /// Returns the settings of a new session.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// The handshake is done.
    fn new(
        settings: &SessionBuilder,
        name: String,
        server: RemoteServer,
        initialized: InitializeResult,
    ) -> Result<Self, StartError> {
        let encoding = match &initialized.capabilities.position_encoding {
            None => PositionEncoding::Utf16,
            Some(chosen) => match PositionEncoding::of(chosen) {
                Some(encoding) => encoding,
                None => {
                    let encoding = chosen.as_str().to_owned();
                    return Err(StartError::UnknownEncoding { server: name, encoding });
                }
            },
        };
        let shutdown_timeout = settings.shutdown_timeout;
        Ok(Self { server, name, initialized, encoding, shutdown_timeout })
    }

    /// The requests and notifications that the server understands. A clone may be kept, and keeps the
    /// connection open.
    pub fn server(&self) -> &RemoteServer {
        &self.server
    }

    /// What the server can do.
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.initialized.capabilities
    }

    /// The name and the version of the server, if it tells them.
    pub fn server_info(&self) -> Option<&ServerInfo> {
        self.initialized.server_info.as_ref()
    }

    /// The unit of all positions in this session.
    pub fn encoding(&self) -> PositionEncoding {
        self.encoding
    }

    /// Ends the server: sends `shutdown`, waits for the answer, sends `exit`, and waits until the server has
    /// closed the connection. The process of an `exec:` endpoint has exited by then.
    ///
    /// Both waits have the [timeout](SessionBuilder::shutdown_timeout) of the session. A process that does not
    /// end in time gets SIGTERM, and is killed two seconds later.
    ///
    /// # Errors
    /// See [`ShutdownError`]. A server that exits with a status other than 0 has failed.
    ///
    /// # Cancel safety
    /// If the future is dropped, the session is dropped.
    pub async fn shutdown(self) -> Result<(), ShutdownError> {
        let asked = self.server.shutdown().timeout(self.shutdown_timeout).await;
        let exited = self.exit().await;
        // Waits for the process, and kills it if it must.
        self.client().clone().close().await;
        match asked {
            // Some servers answer `shutdown` with a value.
            Ok(()) | Err(CallError::Decode { .. }) => exited,
            Err(source) => Err(ShutdownError::Shutdown { server: self.name, source }),
        }
    }

    async fn exit(&self) -> Result<(), ShutdownError> {
        let (server, limit) = (|| self.name.clone(), self.shutdown_timeout);
        let Some(peer) = self.client().peer() else { return Ok(()) };
        let ended = async {
            // A server that is gone needs no `exit`. The reason of its end follows.
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
