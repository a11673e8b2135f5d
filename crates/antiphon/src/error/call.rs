//! The error of a call.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{ErrorObject, Invalid, ParamsError, Refused};

use super::BoxError;

/// The error of a call: an error response of the peer, or a failure on this side.
///
/// ```
/// use antiphon::{CallError, Client};
///
/// # async fn example(client: Client) {
/// match client.call::<i64>("subtract", (42, 23)).await {
///     Ok(difference) => println!("{difference}"),
///     Err(CallError::Rpc(error)) => println!("the server replied with {error}"),
///     Err(CallError::TimedOut(limit)) => println!("no reply within {limit:?}"),
///     Err(other) => println!("{other}"),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The peer replied with an error.
    #[error("{0}")]
    Rpc(ErrorObject),
    /// The connection is closed, and the call was not sent.
    #[error("the connection is closed: {0}")]
    Closed(Arc<str>),
    /// The connection ended before the response. The peer may have executed the call.
    #[error("the connection ended before the response: {0}; the call may have been executed")]
    Interrupted(Arc<str>),
    /// There was no response within the timeout.
    #[error("no response within {0:?}; raise the timeout, or check what keeps the peer busy")]
    TimedOut(Duration),
    /// The params cannot be encoded.
    #[error("the params cannot be encoded")]
    Encode(#[source] ParamsError),
    /// The result does not have the expected type.
    #[error("the result of `{method}` does not have the expected type")]
    Decode {
        /// The method that was called.
        method: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The peer violated the protocol.
    #[error("the peer violated the protocol: {0}")]
    Protocol(String),
    /// The transport cannot carry calls from the server to the client. Subscriptions and progress need
    /// such calls.
    #[error("{0} cannot call back; use a WebSocket or a stream endpoint")]
    NoWayBack(&'static str),
    /// The transport failed, or the response is not JSON-RPC.
    #[error("{0}")]
    Transport(String),
    /// The connection does not support this feature.
    #[error("this connection has no {0}")]
    Unsupported(&'static str),
    /// The call was refused before it was sent, for example because too many calls are pending.
    #[error(transparent)]
    Refused(Refused),
    /// This transport cannot send headers with a call.
    #[error("{0} cannot send headers with a call; set them before connecting, or use HTTP")]
    NoHeaders(&'static str),
    /// A layer of this client rejected the call.
    #[error("a layer rejected the call: {0}")]
    Layer(#[source] BoxError),
}

impl CallError {
    /// The error for an unreadable response: over a local limit, or not JSON-RPC.
    pub(crate) fn unreadable(invalid: &Invalid) -> Self {
        let reason = invalid.error.to_string();
        if invalid.is_over_limit() {
            Self::Transport(format!(
                "the response exceeds a local limit; raise the limit: {reason}"
            ))
        } else {
            Self::Protocol(reason)
        }
    }

    /// Returns a copy of the error, for each call of a batch that failed as a whole.
    pub(crate) fn duplicate(&self) -> Self {
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

/// For `?` in a handler. An error response of the peer is passed on unchanged. A local failure becomes
/// -32603 and is logged, because it may contain addresses that the caller must not see.
impl From<CallError> for ErrorObject {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Rpc(error) => error,
            CallError::NoWayBack(_) => Self::internal_error().with_data(&error.to_string()),
            own => {
                tracing::warn!(error = %own, "a call made by a handler failed");
                Self::internal_error()
            }
        }
    }
}
