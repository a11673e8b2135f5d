//! Methods that block: they run on the blocking pool of the runtime, so the connection stays responsive.

use std::sync::Arc;

use antiphon_core::{ErrorObject, Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::task::AbortOnDropHandle;

use super::{MethodRoute, Router, encode};
use crate::context::Context;
use crate::current_trace::{self, TraceGuard};
use crate::params;

impl Router {
    /// Serves a method that blocks or computes for long: `|params, cx| Ok(result)`.
    ///
    /// The function runs on a thread of the blocking pool
    /// ([`spawn_blocking`](tokio::task::spawn_blocking)), so other calls of the connection are answered
    /// meanwhile. Params and result are those of [`method`](Self::method). A panic becomes the error
    /// -32603.
    ///
    /// A call that is cancelled, or whose deadline passes, stops waiting for its function. A function that
    /// has started runs to its end, because a thread cannot be interrupted. A long one can check
    /// [`Context::cancellation`]. A function that has not started is never run.
    ///
    /// ```
    /// use antiphon::{Context, ErrorObject, Router};
    ///
    /// let router = Router::new().blocking("read", |(path,): (String,), _cx: Context| {
    ///     std::fs::read_to_string(&path).map_err(|error| ErrorObject::new(1, error.to_string()))
    /// });
    /// ```
    ///
    /// # Panics
    /// Panics if the method is already registered.
    #[must_use]
    pub fn blocking<P, R, F>(self, name: &str, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
        F: Fn(P, Context) -> Result<R, ErrorObject> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        self.insert(
            name,
            MethodRoute::Method(Arc::new(move |params, cx| match params::read(params) {
                Err(error) => Box::pin(std::future::ready(Err(error))),
                Ok(params) => {
                    let function = function.clone();
                    Box::pin(run(move || encode(function(params, cx)?)))
                }
            })),
        )
    }
}

/// Runs a function on the blocking pool, in the trace and the span of this call. A panic continues in the
/// call, so that it is handled like that of any other method.
async fn run(function: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    let (trace, span) = (current_trace::current(), tracing::Span::current());
    let task = tokio::task::spawn_blocking(move || {
        let _trace = trace.as_ref().map(TraceGuard::enter);
        span.in_scope(function)
    });
    // A call that was dropped leaves nothing in the queue of the pool.
    let ended = AbortOnDropHandle::new(task).await;
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // The runtime is shutting down.
        Err(_) => Err(ErrorObject::internal_error()),
    })
}
