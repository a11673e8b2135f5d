//! One call or notification of a client, on its way to the connection.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_core::{Code, ErrorObject, TraceContext};

use super::LayerCall;
use super::outgoing_batch::EntrySender;
use crate::call::{CallError, Caller, Invocation, Watch};
use crate::context::Context;
use crate::error::BoxError;
use crate::subscription::{Follower, UnsubscribeRest};

/// A call or notification of a client, on its way to the connection.
///
/// A layer of a client that adds a header to each call:
///
/// ```
/// use antiphon::http::HeaderValue;
/// use antiphon::layer::OutgoingCall;
/// use antiphon::{Client, http::header::USER_AGENT};
/// use tower::util::MapRequestLayer;
///
/// # fn example(client: Client) -> Client {
/// client.layer(MapRequestLayer::new(|mut request: OutgoingCall| {
///     request.call.headers_mut().insert(USER_AGENT, HeaderValue::from_static("ada"));
///     request
/// }))
/// # }
/// ```
#[derive(Clone)]
pub struct OutgoingCall {
    /// The method and the params. Its [`extensions`](Invocation::extensions) and
    /// [`headers`](Invocation::headers) are passed to the transport.
    pub call: Invocation,
    pub(super) kind: OutgoingKind,
    /// Keeps the caller below the layers. An unsubscribe call has none: it goes to its own connection.
    pub(super) _caller: Option<Arc<dyn Caller>>,
}

/// The method of [`Caller`](crate::Caller) that sends a call.
#[derive(Clone)]
pub(super) enum OutgoingKind {
    Call,
    Notification,
    /// An entry of a batch.
    Entry(Arc<EntrySender>),
    /// A call whose progress is watched.
    Watched(Watch),
    /// A subscription. The follower is taken when the request is sent.
    Subscription(Arc<Mutex<Option<Follower>>>),
    /// The end of a subscription.
    Unsubscription(UnsubscribeRest),
}

impl OutgoingCall {
    /// Whether the call is a notification, which has no response.
    pub fn is_notification(&self) -> bool {
        match &self.kind {
            OutgoingKind::Notification => true,
            OutgoingKind::Entry(entry) => entry.is_notification(),
            _ => false,
        }
    }
}

impl fmt::Debug for OutgoingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingCall").field("call", &self.call).finish_non_exhaustive()
    }
}

impl LayerCall for OutgoingCall {
    type Error = CallError;

    fn call(&self) -> &Invocation {
        &self.call
    }

    fn call_mut(&mut self) -> &mut Invocation {
        &mut self.call
    }

    fn is_notification(&self) -> bool {
        OutgoingCall::is_notification(self)
    }

    fn context(&self) -> Option<&Context> {
        None
    }

    fn with_trace(self, _: &TraceContext) -> Self {
        self
    }

    fn rejected(error: ErrorObject) -> CallError {
        CallError::Rejected(Box::new(error))
    }

    fn timed_out(limit: Duration) -> CallError {
        CallError::TimedOut(limit)
    }

    fn from_box_error(error: BoxError) -> CallError {
        error.downcast().map_or_else(|error| CallError::Layer(error.into()), |error| *error)
    }

    fn error_code(error: &CallError) -> Code {
        match error {
            CallError::Rpc(error) => error.code,
            CallError::Rejected(error) => error.code,
            CallError::TimedOut(_) | CallError::SendTimedOut(_) => Code::TIMED_OUT,
            CallError::Layer(error) => {
                error.downcast_ref().map_or(Code::INTERNAL_ERROR, |error: &ErrorObject| error.code)
            }
            _ => Code::INTERNAL_ERROR,
        }
    }
}
