//! Why a session does not start, and why it does not end as it should.

use std::time::Duration;

use antiphon::{CallError, CloseReason, ConnectError, Endpoint, ErrorObject};

use crate::types::InitializeError;

/// A session that was not started.
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
    /// The program cannot be started, or the server cannot be reached.
    #[error("cannot start the language server {server}: {remedy}")]
    Connect {
        /// The endpoint.
        server: String,
        /// What to check.
        remedy: &'static str,
        /// The cause.
        source: ConnectError,
    },
    /// The server has ended before it answered `initialize`. The source has the exit status of a process.
    #[error("{server} ended before it answered `initialize`: see what it has written to stderr")]
    Ended {
        /// The endpoint.
        server: String,
        /// The cause.
        source: CloseReason,
    },
    /// The server has answered `initialize` with an error.
    #[error("{server} refused `initialize`: {error}")]
    Refused {
        /// The endpoint.
        server: String,
        /// The error of the server.
        error: ErrorObject,
        /// Whether the server asks to show the error to the user and to let them try again
        /// ([`InitializeError`]).
        retry: bool,
    },
    /// The server has chosen a unit of positions that this crate does not know.
    #[error("{server} counts positions in `{encoding}`: offered were utf-8, utf-16 or utf-32")]
    UnknownEncoding {
        /// The endpoint.
        server: String,
        /// What the server has chosen.
        encoding: String,
    },
    /// The handshake failed in another way: there was no answer in time, or it is not a valid one.
    #[error("the handshake with {server} failed")]
    Handshake {
        /// The endpoint.
        server: String,
        /// The cause.
        source: CallError,
    },
}

impl StartError {
    pub(super) fn connect(server: String, source: ConnectError, endpoint: &Endpoint) -> Self {
        let remedy = match endpoint {
            Endpoint::Exec { .. } => "check that the program is installed and on the PATH",
            _ => "check that the server listens there",
        };
        Self::Connect { server, remedy, source }
    }

    /// The failure of `initialize` or `initialized`.
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

/// A server that has not ended as the protocol says. It runs no more: its process was killed if necessary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShutdownError {
    /// `shutdown` failed: there was no answer in time, or it was an error.
    #[error("{server} did not shut down")]
    Shutdown {
        /// The endpoint.
        server: String,
        /// The cause.
        source: CallError,
    },
    /// The server ended with a failure after `exit`. The source has the exit status of a process.
    #[error("{server} failed after `exit`")]
    Failed {
        /// The endpoint.
        server: String,
        /// The cause.
        source: CloseReason,
    },
    /// The server did not end in time after `exit`.
    #[error(
        "{server} was still running {limit:?} after `exit`, and was stopped: raise the shutdown timeout if it only needs longer"
    )]
    StillRunning {
        /// The endpoint.
        server: String,
        /// The time that it had.
        limit: Duration,
    },
}
