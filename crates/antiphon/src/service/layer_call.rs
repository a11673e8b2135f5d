//! The calls that layers see, in both directions.
//!
//! The built-in layers are written once for both directions. They access a call only through
//! [`LayerCall`], and the service that they wrap only through [`CallService`].

use std::time::Duration;

use antiphon_core::{Code, ErrorObject, RawJson, TraceContext};
use tower_service::Service;

use super::{IncomingCall, OutgoingCall};
use crate::call::Invocation;
use crate::context::Context;
use crate::error::BoxError;
use crate::same_type::same_type;

/// A call that passes through layers: an [`IncomingCall`] or an [`OutgoingCall`]. This trait is sealed.
pub trait LayerCall: sealed::Sealed + Send + Sized + 'static {
    /// The error of a call in this direction.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The method and the params.
    fn call(&self) -> &Invocation;

    /// The method and the params, mutably.
    fn call_mut(&mut self) -> &mut Invocation;

    /// Whether the call is a notification, which has no response.
    fn is_notification(&self) -> bool;

    /// The context of an incoming call; `None` for an outgoing call.
    fn context(&self) -> Option<&Context>;

    /// Returns the call with this trace context added for the handler. An outgoing call is unchanged.
    #[must_use]
    fn with_trace(self, trace: &TraceContext) -> Self;

    /// The error of a call that a layer rejects before it is sent.
    fn rejected(error: ErrorObject) -> Self::Error;

    /// The error of a call that exceeds its time limit.
    fn timed_out(limit: Duration) -> Self::Error;

    /// Converts the error of a layer from another crate.
    fn from_box_error(error: BoxError) -> Self::Error;

    /// The error code to report for an error; -32603 for a local failure.
    fn error_code(error: &Self::Error) -> Code;
}

/// Converts the error of an inner service. An error of the right type is passed through unchanged.
pub(super) fn convert_error<R: LayerCall, E: Into<BoxError> + 'static>(error: E) -> R::Error {
    same_type(error).unwrap_or_else(|error: E| R::from_box_error(error.into()))
}

/// Any service that layers can wrap: it answers calls of type `R` with raw results.
pub trait CallService<R>:
    Service<R, Response = RawJson, Error: Into<BoxError> + 'static> + Clone
{
}

impl<S, R> CallService<R> for S where
    S: Service<R, Response = RawJson, Error: Into<BoxError> + 'static> + Clone
{
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::IncomingCall {}
    impl Sealed for super::OutgoingCall {}
}
