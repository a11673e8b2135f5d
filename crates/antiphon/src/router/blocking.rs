//! Methods that block: they run on the blocking pool of the runtime, so the connection stays responsive.

use std::sync::Arc;

use antiphon_core::{ErrorObject, Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::{MethodRoute, Router, encode};
use crate::context::Context;
use crate::current_trace::TraceScope;
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
    /// At most 512 functions of this process run or wait for a pool thread. Functions whose calls were
    /// cancelled count too. Further calls wait, and count as in flight.
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

/// The maximum number of functions that run on the blocking pool or wait in its queue: as many as the pool
/// has threads by default.
///
/// The pool keeps a function in its queue until a thread is free, even if the function was aborted. So a
/// peer that calls and cancels would make the queue grow without a limit.
const MAX_FUNCTIONS: usize = 512;

static FUNCTIONS: Semaphore = Semaphore::const_new(MAX_FUNCTIONS);

/// Runs a function on the blocking pool, in the trace and the span of this call. A panic continues in the
/// call, so that it is handled like that of any other method.
async fn run(function: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    let scope = TraceScope::current();
    let permit = FUNCTIONS.acquire().await;
    let task = tokio::task::spawn_blocking(move || {
        // Held by the function and not by the call, because the call may end first.
        let _permit = permit;
        scope.run(function)
    });
    // A function whose call was dropped is not started any more.
    let ended = AbortOnDropHandle::new(task).await;
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // The runtime is shutting down.
        Err(_) => Err(ErrorObject::internal_error()),
    })
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::{Context as Poller, Waker};

    use antiphon_core::RawJson;

    use super::*;

    /// One function occupies the only thread of the pool. Each other call is dropped after its first poll.
    #[test]
    fn dropped_calls_do_not_fill_the_queue_of_the_pool() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let _entered = runtime.enter();
        let (go, signal) = mpsc::channel::<()>();
        let function = Arc::new(());
        let call = |signal: Option<mpsc::Receiver<()>>| {
            let function = function.clone();
            Box::pin(run(move || {
                let _function = function;
                let _ = signal.map(|signal| signal.recv());
                Ok(RawJson::NULL)
            }))
        };
        let poll = |call: &mut (dyn Future<Output = Outcome> + Unpin)| {
            assert!(Pin::new(call).poll(&mut Poller::from_waker(Waker::noop())).is_pending());
        };
        let mut first = call(Some(signal));
        poll(&mut first);
        for _ in 0..2 * MAX_FUNCTIONS {
            poll(&mut call(None));
        }
        assert!(Arc::strong_count(&function) <= MAX_FUNCTIONS + 1);
        drop(go);
        runtime.block_on(first).unwrap();
    }
}
