//! The error of an exchange over HTTP.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use http::Uri;

use crate::call::CallError;

/// The reason why an exchange has no response.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// No connection could be made.
    Unreachable(String),
    /// The exchange failed at an unknown point.
    Failed(String),
    /// No byte of the request was sent, so it can be sent again.
    Unsent(io::Error),
    /// The server may have read the request, and sent no byte of a response.
    Unanswered(Option<io::Error>),
    /// The response ended early.
    BrokeOff(Cow<'static, str>),
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

/// Returns the address for error messages. Path and query are left out: they may hold a key, and messages
/// go to logs.
pub(super) fn named(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or("http");
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    format!("{scheme}://{authority}")
}

impl ExchangeError {
    /// Returns the error of a call to that address.
    pub(super) fn at(self, uri: &Uri) -> CallError {
        let uri = named(uri);
        CallError::Transport(match self {
            Self::Unreachable(cause) => {
                format!("cannot reach {uri}: {cause}; is the server running there?")
            }
            Self::Failed(cause) => format!("cannot reach {uri}: {cause}"),
            Self::Unsent(error) => format!("cannot reach {uri}: {error}"),
            Self::Unanswered(error) => {
                let cause = error.map(|error| format!(" ({error})")).unwrap_or_default();
                format!(
                    "{uri} closed the connection and did not answer{cause}; what was asked may \
                     have been done"
                )
            }
            Self::BrokeOff(cause) => format!("the answer of {uri} broke off: {cause}"),
            Self::Stalled { stall, is_answering: true } => {
                format!("the answer of {uri} stood unfinished for {stall:?}")
            }
            Self::Stalled { stall, is_answering: false } => {
                format!("{uri} has read nothing for {stall:?}")
            }
            Self::Malformed(reason) => format!("the answer of {uri} is not HTTP/1.1: {reason}"),
            Self::TooLarge(limit) => {
                format!("the response is over the limit of {limit} bytes; raise the frame limit")
            }
        })
    }

    /// Returns the reason why hyper could not connect: the error of our own connector, or the innermost
    /// cause.
    pub(super) fn from_connect(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(this) = cause {
            match this.downcast_ref() {
                Some(Self::Failed(reason)) => return Self::Failed(reason.clone()),
                Some(Self::Unreachable(reason)) => return Self::Unreachable(reason.clone()),
                _ => cause = this.source(),
            }
        }
        Self::Unreachable(Self::root(error))
    }

    /// Returns the innermost cause of an error, which is the most specific.
    pub(super) fn root(error: &dyn Error) -> String {
        let mut cause = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause.to_string()
    }
}
