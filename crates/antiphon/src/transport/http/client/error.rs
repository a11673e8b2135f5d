//! The error of an exchange over HTTP.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use http::Uri;

use crate::call::CallError;
use crate::error::{Cause, CloseReason};

/// The reason why an exchange has no response.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// No connection could be made, or its TLS handshake failed.
    Unreachable(Cause),
    /// The exchange failed at an unknown point.
    Failed(Cause),
    /// No byte of the request was sent, so it can be sent again.
    Unsent(io::Error),
    /// The server may have read the request, and sent no byte of a response.
    Unanswered(Option<io::Error>),
    /// The response ended early.
    BrokeOff(Cause),
    /// No byte of the response, or of the request, was transferred for `stall`.
    Stalled { stall: Duration, is_answering: bool },
    /// The received bytes are not a response.
    Malformed(Cow<'static, str>),
    /// The body is over this limit.
    TooLarge(usize),
}

/// hyper passes it through as a `dyn Error`; [`ExchangeError::at`] makes the message for users.
impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Error for ExchangeError {}

/// A failed exchange, for users.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct FailedExchange {
    what: String,
    source: Option<Cause>,
}

/// Returns the address for error messages. Path and query are left out: they may hold a key, and messages
/// go to logs.
pub(super) fn named(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or("http");
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    format!("{scheme}://{authority}")
}

/// The error of a body over this limit.
pub(super) fn over_limit(limit: usize) -> CallError {
    let reason = format!("the body is larger than `Limits::frame_bytes` ({limit} bytes)");
    CallError::OverLimit(reason.into())
}

impl ExchangeError {
    /// Returns the error of a call to that address.
    pub(super) fn at(self, uri: &Uri) -> CallError {
        let uri = named(uri);
        let interrupted = |what, source| {
            CallError::Interrupted(CloseReason::failed(FailedExchange { what, source }))
        };
        match self {
            Self::Unreachable(source) => CallError::Unreachable { server: uri, source },
            Self::Unsent(error) => CallError::Unreachable { server: uri, source: error.into() },
            Self::Failed(cause) => {
                interrupted(format!("the exchange with {uri} failed"), Some(cause))
            }
            Self::Unanswered(error) => interrupted(
                format!("{uri} closed the connection without a response"),
                error.map(Cause::from),
            ),
            Self::BrokeOff(cause) => {
                interrupted(format!("the response from {uri} ended early"), Some(cause))
            }
            Self::Stalled { stall, is_answering: true } => interrupted(
                format!(
                    "the response from {uri} made no progress for {stall:?}; \
                    raise `Limits::stall_timeout` if the server needs more time"
                ),
                None,
            ),
            Self::Stalled { stall, is_answering: false } => interrupted(
                format!(
                    "{uri} has not read the request for {stall:?}; \
                    raise `Limits::stall_timeout` if the server needs more time"
                ),
                None,
            ),
            Self::Malformed(reason) => {
                let what = format!("the response from {uri} is not HTTP/1.1");
                CallError::Transport(
                    FailedExchange { what, source: Some(reason.into_owned().into()) }.into(),
                )
            }
            Self::TooLarge(limit) => over_limit(limit),
        }
    }

    /// Returns the reason why hyper could not connect: the error of our connector, or the innermost
    /// cause.
    pub(super) fn from_connect(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(this) = cause {
            if let Some(Self::Unreachable(reason)) = this.downcast_ref() {
                return Self::Unreachable(reason.clone());
            }
            cause = this.source();
        }
        Self::Unreachable(Self::root(error))
    }

    /// Returns the innermost cause of an error, which is the most specific. An error of the system
    /// remains one.
    pub(super) fn root(error: &(dyn Error + 'static)) -> Cause {
        let mut cause = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        match cause.downcast_ref::<io::Error>() {
            Some(error) => match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code).into(),
                None => io::Error::new(error.kind(), error.to_string()).into(),
            },
            None => cause.to_string().into(),
        }
    }
}
