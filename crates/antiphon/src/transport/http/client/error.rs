//! Why an exchange gave no answer.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use http::Uri;

use crate::call::CallError;

#[derive(Debug)]
pub(super) enum ExchangeError {
    /// There is no connection.
    Unreachable(String),
    /// The exchange failed, and nobody knows how far it went.
    Failed(String),
    /// Nothing of the request has left: it can be sent again.
    Unsent(io::Error),
    /// The request may have been read, and not a byte of an answer came.
    Unanswered(Option<io::Error>),
    /// The answer ends before its end.
    BrokeOff(Cow<'static, str>),
    /// Of the answer, or of the request, nothing more has moved for so long.
    Stalled { stall: Duration, is_answering: bool },
    /// What came is no answer.
    Malformed(Cow<'static, str>),
    /// The body has more bytes than this.
    TooLarge(usize),
}

/// Passes through hyper, where an error must be one.
impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Error for ExchangeError {}

/// What an address is called in messages: its path and query may hold a key, and messages go to logs.
pub(super) fn named(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or("http");
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    format!("{scheme}://{authority}")
}

impl ExchangeError {
    /// What whoever called that address is told.
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
                format!("the answer is over the limit of {limit} bytes; raise the frame limit")
            }
        })
    }

    /// Why hyper could not connect: what our own dialling says, or the innermost cause.
    pub(super) fn of_dialing(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(this) = cause {
            match this.downcast_ref() {
                Some(Self::Failed(said)) => return Self::Failed(said.clone()),
                Some(Self::Unreachable(said)) => return Self::Unreachable(said.clone()),
                _ => cause = this.source(),
            }
        }
        Self::Unreachable(Self::root(error))
    }

    /// The innermost cause of an error, which says most.
    pub(super) fn root(error: &dyn Error) -> String {
        let mut cause = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause.to_string()
    }
}
