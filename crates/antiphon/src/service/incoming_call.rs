//! One call or notification on its way to a handler.

use std::time::Duration;

use antiphon_core::{Code, ErrorObject, TraceContext};

use super::LayerCall;
use crate::call::{CallError, Invocation};
use crate::context::Context;
use crate::error::{BoxError, ErrorChain};

/// A call or notification on its way to a handler.
///
/// A layer of a server that adds a value to each call:
///
/// ```
/// use antiphon::layer::IncomingCall;
/// use antiphon::{Handler, Router};
/// use tower::util::MapRequestLayer;
///
/// let service = Router::new().layer(MapRequestLayer::new(|mut request: IncomingCall| {
///     request.call.extensions.insert(std::time::Instant::now());
///     request
/// }));
/// # drop(service);
/// ```
#[derive(Clone, Debug)]
pub struct IncomingCall {
    /// The method and the params.
    pub call: Invocation,
    /// The context of the call. A notification has no [`id`](Context::id).
    pub cx: Context,
}

impl LayerCall for IncomingCall {
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

    fn with_trace(self, trace: &TraceContext) -> Self {
        Self { cx: self.cx.with(trace.clone()), ..self }
    }

    fn rejected(error: ErrorObject) -> ErrorObject {
        error
    }

    fn timed_out(_: Duration) -> ErrorObject {
        ErrorObject::timed_out()
    }

    fn from_box_error(error: BoxError) -> ErrorObject {
        let error = match error.downcast::<ErrorObject>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        match error.downcast::<CallError>() {
            Ok(error) => (*error).into(),
            Err(error) => {
                tracing::warn!(error = %ErrorChain(&*error), "a layer failed a call");
                ErrorObject::internal_error()
            }
        }
    }

    fn error_code(error: &ErrorObject) -> Code {
        error.code
    }
}
