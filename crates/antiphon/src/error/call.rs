//! The error of a call.

use std::time::Duration;

use antiphon_core::{Code, ErrorObject, Invalid, Method, ParamsError, Refused};
use http::StatusCode;

use super::unreadable::UnreadableMessage;
use super::{Cause, CloseReason, ErrorChain, HttpStatusError};

/// The error of a call: an error response of the peer, or a failure on this side.
///
/// `Display` names the failure, and [`source`](std::error::Error::source) holds its cause.
/// [`ErrorChain`] displays both.
///
/// ```
/// use antiphon::{CallError, Client, ErrorChain};
///
/// # async fn example(client: Client) {
/// match client.call::<i64>("subtract", (42, 23)).await {
///     Ok(difference) => println!("{difference}"),
///     Err(CallError::Rpc(error)) => println!("the server replied with {error}"),
///     Err(CallError::TimedOut(limit)) => println!("no reply within {limit:?}"),
///     Err(error) if error.was_not_sent() => println!("safe to send again: {error}"),
///     Err(error) => println!("{}", ErrorChain(&error)),
/// }
/// # }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The peer replied with an error.
    #[error("{0}")]
    Rpc(ErrorObject),
    /// The connection is closed, and the call was not sent.
    #[error("the connection is closed")]
    Closed(#[source] CloseReason),
    /// The connection ended before the response. The peer may have executed the call.
    #[error("the call may have been executed, but the connection ended before the response")]
    Interrupted(#[source] CloseReason),
    /// There was no response within the timeout. The peer may have executed the call. A call that is known not
    /// to be sent fails with [`Unreachable`](Self::Unreachable) or [`SendTimedOut`](Self::SendTimedOut) instead.
    #[error("no response within {0:?}; raise the timeout, or check what keeps the peer busy")]
    TimedOut(Duration),
    /// The call was not sent within the timeout, because the peer does not read what was sent before.
    #[error(
        "not sent within {0:?}, because the peer does not read; check what keeps the peer busy"
    )]
    SendTimedOut(Duration),
    /// No connection could be made, or none was ready within the timeout of the call. The call was not sent. So the call was not sent.
    #[error("cannot reach {server}")]
    Unreachable {
        /// The server, without the path.
        server: String,
        /// The cause.
        source: Cause,
    },
    /// The server responded with an HTTP status of failure, and without JSON-RPC.
    #[error(transparent)]
    HttpStatus(Box<HttpStatusError>),
    /// The params cannot be encoded.
    #[error("the params cannot be encoded")]
    Encode(#[source] ParamsError),
    /// The result does not have the expected type.
    #[error("the result of `{method}` does not have the expected type")]
    Decode {
        /// The method that was called.
        method: Method,
        /// The cause: an error of `serde_json`.
        source: Cause,
    },
    /// The peer violated the protocol.
    #[error("the peer violated the protocol")]
    Protocol(#[source] Cause),
    /// The response, or what follows a response, exceeds a limit of this side.
    #[error("a message exceeds a limit of this side; send less, or raise the limit")]
    OverLimit(#[source] Cause),
    /// The transport failed at an unknown point, or the response cannot be read.
    #[error("the transport failed")]
    Transport(#[source] Cause),
    /// The transport cannot carry calls from the server to the client. Subscriptions and progress need
    /// such calls.
    #[error("{0} cannot call back; use a WebSocket or a stream endpoint")]
    CannotCallBack(&'static str),
    /// This transport cannot send headers with a call.
    #[error("{0} cannot send headers with a call; set them before connecting, or use HTTP")]
    CannotSendHeaders(&'static str),
    /// The connection does not support this feature.
    #[error("this connection has no {0}")]
    Unsupported(&'static str),
    /// The call was refused before it was sent, for example because too many calls are pending.
    #[error(transparent)]
    Refused(Refused),
    /// A layer of this client rejected the call before it was sent.
    #[error("a layer rejected the call")]
    Rejected(#[source] Box<ErrorObject>),
    /// A layer of this client failed, before or after the call was sent.
    #[error("a layer failed the call")]
    Layer(#[source] Cause),
}

impl CallError {
    /// Whether the call was certainly not sent. Then it is safe to send it again.
    ///
    /// ```
    /// use antiphon::CallError;
    ///
    /// assert!(CallError::Closed("the queue is full".into()).was_not_sent());
    /// assert!(!CallError::Interrupted("the cable was cut".into()).was_not_sent());
    /// ```
    pub fn was_not_sent(&self) -> bool {
        match self {
            Self::Closed(_)
            | Self::SendTimedOut(_)
            | Self::Unreachable { .. }
            | Self::Encode(_)
            | Self::CannotCallBack(_)
            | Self::CannotSendHeaders(_)
            | Self::Unsupported(_)
            | Self::Refused(_)
            | Self::Rejected(_) => true,
            Self::Rpc(_)
            | Self::Interrupted(_)
            | Self::TimedOut(_)
            | Self::HttpStatus(_)
            | Self::Decode { .. }
            | Self::Protocol(_)
            | Self::OverLimit(_)
            | Self::Transport(_)
            | Self::Layer(_) => false,
        }
    }

    /// Whether the peer may have executed the call, completely or in part. In doubt, the answer is yes.
    ///
    /// Returns false if the call was not sent, if the peer rejected it without running it (for example
    /// "method not found" or "invalid params"), or if the response was an HTTP status from 400 to 499 without
    /// JSON-RPC. Returns true for -32009, because a peer that shuts down also sends it for a call that it has
    /// started, and for the statuses 408 and 499, because gateways send them when a started call takes too
    /// long or its client disconnects.
    ///
    /// The code of an error response is trusted. A method that fails with such a code after a part of its
    /// work, or that passes on the error of another server, gives a wrong answer here.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Rpc(error) => !is_refusal(error.code),
            Self::HttpStatus(error) => !is_refused_by(error.status),
            other => !other.was_not_sent(),
        }
    }

    /// The HTTP status, if the server responded with a status of failure and without JSON-RPC: for
    /// example 401, 404 or 503.
    pub fn http_status(&self) -> Option<StatusCode> {
        match self {
            Self::HttpStatus(error) => Some(error.status),
            _ => None,
        }
    }

    /// The error for an unreadable response: over a local limit, or not JSON-RPC.
    pub(crate) fn unreadable(invalid: &Invalid) -> Self {
        let reason = Cause::new(invalid.error.clone());
        if invalid.is_over_limit() { Self::OverLimit(reason) } else { Self::Protocol(reason) }
    }

    /// Like [`unreadable`](Self::unreadable), with the beginning of the message. `note` is what else is known
    /// about it.
    pub(crate) fn unreadable_message(invalid: &Invalid, message: &[u8], note: String) -> Self {
        if invalid.is_over_limit() {
            return Self::unreadable(invalid);
        }
        Self::protocol(UnreadableMessage::new(message, note, invalid.error.clone()))
    }

    /// The error of a call that was not sent, for this reason.
    pub(crate) fn closed(reason: impl Into<CloseReason>) -> Self {
        Self::Closed(reason.into())
    }

    /// The error of a peer that violated the protocol in this way.
    pub(crate) fn protocol(violation: impl Into<Cause>) -> Self {
        Self::Protocol(violation.into())
    }
}

/// Whether a peer sends this code instead of executing the call.
fn is_refusal(code: Code) -> bool {
    [
        Code::PARSE_ERROR,
        Code::INVALID_REQUEST,
        Code::METHOD_NOT_FOUND,
        Code::INVALID_PARAMS,
        Code::BATCHES_NOT_SUPPORTED,
        Code::TOO_MANY_SUBSCRIPTIONS,
        Code::REQUEST_TOO_LARGE,
        Code::BATCH_TOO_LARGE,
        Code::UNAUTHORIZED,
        Code::RATE_LIMITED,
    ]
    .contains(&code)
}

/// Whether a server sends this status instead of executing the call.
fn is_refused_by(status: StatusCode) -> bool {
    const CLIENT_CLOSED_REQUEST: u16 = 499;
    status.is_client_error()
        && ![StatusCode::REQUEST_TIMEOUT.as_u16(), CLIENT_CLOSED_REQUEST].contains(&status.as_u16())
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
            CallError::CannotCallBack(_) => Self::internal_error().with_data(&error.to_string()),
            own => {
                tracing::warn!(error = %ErrorChain(&own), "a call made by a handler failed");
                Self::internal_error()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reply is moved as a `Result` with this error.
    #[test]
    fn an_error_is_as_small_as_the_error_object_in_it() {
        assert_eq!(size_of::<CallError>(), size_of::<ErrorObject>());
    }
}
