//! Why a call has no result.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{ErrorObject, Invalid, ParamsError, Refused};

use super::BoxError;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The other side answered with an error.
    #[error("{0}")]
    Rpc(ErrorObject),
    /// The connection is gone, and the call was not sent.
    #[error("the connection is closed: {0}")]
    Closed(Arc<str>),
    /// The connection was lost while the call was under way.
    #[error("the connection ended before the answer came: {0}; what was asked may have been done")]
    Interrupted(Arc<str>),
    /// No answer came in time.
    #[error("no answer within {0:?}; raise the timeout or see what keeps the other side busy")]
    TimedOut(Duration),
    /// The params cannot be sent.
    #[error("the params cannot be sent")]
    Encode(#[source] ParamsError),
    /// The result is not of the type asked for.
    #[error("the result of `{method}` is not what was asked for")]
    Decode {
        /// The method that was called.
        method: String,
        /// What did not fit.
        source: serde_json::Error,
    },
    /// The other side broke the protocol.
    #[error("the other side broke the protocol: {0}")]
    Protocol(String),
    /// This transport has no way back to the caller.
    #[error("{0} cannot call back; connect by WebSocket or a stream")]
    NoWayBack(&'static str),
    /// What carries the calls failed, or answered something that is not JSON-RPC.
    #[error("{0}")]
    Transport(String),
    /// What was asked for is not to be had here.
    #[error("this connection has no {0}")]
    Unsupported(&'static str),
    /// Too many calls wait already.
    #[error(transparent)]
    Refused(Refused),
    /// This transport has no headers to send with a call.
    #[error("{0} sends no headers with a call; set them before connecting, or call by HTTP")]
    NoHeaders(&'static str),
    /// A layer of our own ended the call.
    #[error("a layer ended the call: {0}")]
    Layer(#[source] BoxError),
}

impl CallError {
    /// An answer that could not be read: over a limit of ours, or no JSON-RPC.
    pub(crate) fn unreadable(invalid: &Invalid) -> Self {
        let reason = invalid.error.to_string();
        if invalid.is_over_limit() {
            Self::Transport(format!("the answer is over a limit of ours; raise it: {reason}"))
        } else {
            Self::Protocol(reason)
        }
    }

    /// The same for each call of a batch that failed as a whole.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Rpc(error) => Self::Rpc(error.clone()),
            Self::Closed(reason) => Self::Closed(reason.clone()),
            Self::Interrupted(reason) => Self::Interrupted(reason.clone()),
            Self::TimedOut(limit) => Self::TimedOut(*limit),
            Self::Protocol(reason) => Self::Protocol(reason.clone()),
            Self::NoWayBack(transport) => Self::NoWayBack(transport),
            Self::NoHeaders(transport) => Self::NoHeaders(transport),
            Self::Refused(refused) => Self::Refused(*refused),
            other => Self::Transport(other.to_string()),
        }
    }

    pub(crate) fn closed(reason: impl Into<Arc<str>>) -> Self {
        Self::Closed(reason.into())
    }
}

impl From<ErrorObject> for CallError {
    fn from(error: ErrorObject) -> Self {
        Self::Rpc(error)
    }
}

/// For `?` in a handler: the other side's error is passed on as it came. Our own becomes -32603 and
/// goes to the log: it may name addresses that the caller should not see.
impl From<CallError> for ErrorObject {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Rpc(error) => error,
            CallError::NoWayBack(_) => Self::internal_error().with_data(&error.to_string()),
            own => {
                tracing::warn!(error = %own, "a call that a handler made failed");
                Self::internal_error()
            }
        }
    }
}
