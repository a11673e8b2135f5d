//! Errors of the start and the shutdown of a session.

use std::time::Duration;

use antiphon::{CallError, CloseReason, ConnectError, EndpointError, ErrorObject};

use crate::types::InitializeError;

/// The reason why a session did not start.
///
/// ```
/// use antiphon_lsp::{LanguageClient, ServerSession, StartError};
/// # struct Headless;
/// # impl LanguageClient for Headless {}
///
/// # async fn example() {
/// match ServerSession::builder().start("exec+header:clangd", Headless).await {
///     Err(error @ StartError::Refused { retry: true, .. }) => println!("{error} Try again?"),
///     other => drop(other),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The endpoint is invalid.
    #[error("the endpoint of the language server is invalid: use one such as exec+header:clangd")]
    Endpoint(#[source] EndpointError),
    /// The program of an `exec:` endpoint cannot be started.
    #[error(
        "cannot start the language server {server}: check that the program is installed and on the PATH"
    )]
    Spawn {
        /// The endpoint.
        server: String,
        /// The cause.
        source: ConnectError,
    },
    /// The server cannot be reached.
    #[error("cannot connect to the language server {server}: check that the server listens there")]
    Connect {
        /// The endpoint.
        server: String,
        /// The cause.
        source: ConnectError,
    },
    /// The server ended before its response to `initialize`. The source contains the exit status of a process.
    #[error("{server} ended before its response to `initialize`; see its output on stderr")]
    Ended {
        /// The endpoint.
        server: String,
        /// The cause.
        source: CloseReason,
    },
    /// The server responded to `initialize` with an error.
    #[error("{server} refused `initialize`: {error}")]
    Refused {
        /// The endpoint.
        server: String,
        /// The error of the server.
        error: ErrorObject,
        /// Whether the server asks the client to show the error to the user and to offer a retry
        /// ([`InitializeError`]).
        retry: bool,
    },
    /// The server chose a position encoding that this crate does not support.
    #[error("{server} counts positions in `{encoding}`; it must choose utf-8, utf-16 or utf-32")]
    UnknownEncoding {
        /// The endpoint.
        server: String,
        /// The encoding that the server chose.
        encoding: String,
    },
    /// The handshake failed for another reason: the response timed out or is invalid.
    #[error(
        "the handshake with {server} failed; check that it is a language server, or raise `initialize_timeout`"
    )]
    Handshake {
        /// The endpoint.
        server: String,
        /// The cause.
        source: CallError,
    },
}

impl StartError {
    pub(super) fn connect(server: String, source: ConnectError, is_child: bool) -> Self {
        if is_child { Self::Spawn { server, source } } else { Self::Connect { server, source } }
    }

    /// Converts a failure of `initialize` or `initialized`.
    pub(super) fn handshake(server: String, error: CallError) -> Self {
        match error {
            CallError::Rpc(error) => {
                let data =
                    error.data.as_ref().and_then(|data| data.decode::<InitializeError>().ok());
                Self::Refused { server, error, retry: data.is_some_and(|data| data.retry) }
            }
            CallError::Interrupted(source) | CallError::Closed(source) => {
                Self::Ended { server, source }
            }
            source => Self::Handshake { server, source },
        }
    }
}

/// The reason why a server did not end as the protocol requires. The connection is closed. If the session started the
/// process of the server, the process no longer runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShutdownError {
    /// `shutdown` failed: the response timed out or was an error.
    #[error("`shutdown` of {server} failed; the session was ended anyway")]
    Shutdown {
        /// The endpoint.
        server: String,
        /// The cause.
        source: CallError,
    },
    /// The server failed after `exit`. The source contains the exit status of a process.
    #[error("{server} failed after `exit`; see its output on stderr")]
    Failed {
        /// The endpoint.
        server: String,
        /// The cause.
        source: CloseReason,
    },
    /// The server did not close the connection in time after `exit`. The session has closed it.
    #[error(
        "{server} did not close the connection within {limit:?} after `exit`; \
         raise `shutdown_timeout` if it needs more time"
    )]
    StillRunning {
        /// The endpoint.
        server: String,
        /// The timeout.
        limit: Duration,
    },
}
