//! What passes through a layer.
//!
//! The ready layers are written once for both directions: [`Passing`] is what they need to know.

use std::fmt;
use std::time::Duration;

use antiphon_core::{Code, ErrorObject, TraceContext};

use super::BoxError;
use super::caller_service::Way;
use crate::call::{CallError, Invocation};
use crate::context::Context;
use crate::same_type::same_type;

/// A call or notification that is being served, on its way in.
#[derive(Clone, Debug)]
pub struct IncomingCall {
    /// What is called, with what.
    pub call: Invocation,
    /// By whom. A Notification has no [`id`](Context::id).
    pub cx: Context,
}

/// A call or notification of ours, on its way out.
#[derive(Clone)]
pub struct OutgoingCall {
    /// What to call, with what. What is in its [`extensions`](Invocation::extensions) and
    /// [`headers`](Invocation::headers) goes along.
    pub call: Invocation,
    pub(super) way: Way,
}

impl OutgoingCall {
    /// Whether no answer will come.
    pub fn is_notification(&self) -> bool {
        matches!(self.way, Way::Notification | Way::Entry(_, true))
    }
}

impl fmt::Debug for OutgoingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingCall").field("call", &self.call).finish_non_exhaustive()
    }
}

/// What passes through a layer: what is served, and what is called. It is sealed.
pub trait Passing: sealed::Sealed + Send + Sized + 'static {
    /// How it ends badly.
    type Error: std::error::Error + Send + Sync + 'static;

    /// What is called.
    fn call(&self) -> &Invocation;

    /// The same, to be changed.
    fn call_mut(&mut self) -> &mut Invocation;

    /// Whether nobody waits for an answer.
    fn is_notification(&self) -> bool;

    /// The call, for who may have to cancel what it has set going.
    fn context(&self) -> Option<&Context>;

    /// A layer refuses it with this error.
    fn refused(error: ErrorObject) -> Self::Error;

    /// It was not done in time.
    fn timed_out(limit: Duration) -> Self::Error;

    /// A foreign layer refuses it.
    fn adopt(error: BoxError) -> Self::Error;

    /// The code that stands for an error; -32603 for a failure of our own.
    fn code(error: &Self::Error) -> Code;

    /// The handler is told where it stands in its trace.
    #[must_use]
    fn in_trace(self, trace: &TraceContext) -> Self;

    /// A layer keeps it waiting for room.
    #[doc(hidden)]
    fn hold_up(&self) {}
}

/// The error of a service further in; the same type passes as it is.
pub(super) fn adopted<R: Passing, E: Into<BoxError> + 'static>(error: E) -> R::Error {
    same_type(error).unwrap_or_else(|error: E| R::adopt(error.into()))
}

impl Passing for IncomingCall {
    type Error = ErrorObject;

    fn call(&self) -> &Invocation {
        &self.call
    }

    fn call_mut(&mut self) -> &mut Invocation {
        &mut self.call
    }

    fn is_notification(&self) -> bool {
        self.cx.id().is_none()
    }

    fn context(&self) -> Option<&Context> {
        Some(&self.cx)
    }

    fn in_trace(self, trace: &TraceContext) -> Self {
        Self { cx: self.cx.with(trace.clone()), ..self }
    }

    fn refused(error: ErrorObject) -> ErrorObject {
        error
    }

    fn timed_out(_: Duration) -> ErrorObject {
        ErrorObject::timed_out()
    }

    fn adopt(error: BoxError) -> ErrorObject {
        let error = match error.downcast::<ErrorObject>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        match error.downcast::<CallError>() {
            Ok(error) => (*error).into(),
            Err(error) => {
                tracing::warn!(%error, "a layer ended a call");
                ErrorObject::internal_error()
            }
        }
    }

    fn code(error: &ErrorObject) -> Code {
        error.code
    }
}

impl Passing for OutgoingCall {
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

    fn in_trace(self, _: &TraceContext) -> Self {
        self
    }

    fn refused(error: ErrorObject) -> CallError {
        CallError::Layer(error.into())
    }

    fn timed_out(limit: Duration) -> CallError {
        CallError::TimedOut(limit)
    }

    fn adopt(error: BoxError) -> CallError {
        error.downcast().map_or_else(CallError::Layer, |error| *error)
    }

    fn code(error: &CallError) -> Code {
        match error {
            CallError::Rpc(error) => error.code,
            CallError::TimedOut(_) => Code::TIMED_OUT,
            CallError::Layer(error) => {
                error.downcast_ref().map_or(Code::INTERNAL_ERROR, |error: &ErrorObject| error.code)
            }
            _ => Code::INTERNAL_ERROR,
        }
    }

    fn hold_up(&self) {
        if let Way::Entry(seat, _) = &self.way {
            seat.hold_up();
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::IncomingCall {}
    impl Sealed for super::OutgoingCall {}
}
