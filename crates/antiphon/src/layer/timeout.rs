//! A time limit for each call: [`Timeout`].

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::RawJson;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use super::policy::Policy;
use crate::context::Context;
use crate::service::{CallService, LayerCall, ReadyCall};

/// Ends calls that exceed a time limit.
///
/// The time starts when the call reaches this layer, so it includes time spent waiting in inner layers. A
/// call that exceeds its limit is dropped, its cancellation token is cancelled, and its response is -32012.
/// On a client, the call fails with [`CallError::TimedOut`](crate::CallError::TimedOut).
///
/// The limit is per call. [`Limits::request_timeout`](crate::Limits::request_timeout) is per message: one
/// limit for a whole batch.
///
/// ```
/// use antiphon::layer::Timeout;
/// use antiphon::{Context, Handler, Router};
/// use std::time::Duration;
///
/// # let router = Router::new();
/// let service = router.layer(
///     Timeout::new(Duration::from_secs(5)).method("report.build", Duration::from_secs(600)),
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Timeout {
    limit: Duration,
    methods: Arc<HashMap<Box<str>, Duration>>,
}

impl Timeout {
    /// Ends each call after this time.
    pub fn new(limit: Duration) -> Self {
        Self { limit, methods: Arc::default() }
    }

    /// Sets a different limit for this method.
    #[must_use]
    pub fn method(mut self, name: &str, limit: Duration) -> Self {
        Arc::make_mut(&mut self.methods).insert(name.into(), limit);
        self
    }

    fn limit_of(&self, method: &str) -> Duration {
        match self.methods.is_empty() {
            true => self.limit,
            false => self.methods.get(method).copied().unwrap_or(self.limit),
        }
    }
}

impl<S: CallService<R>, R: LayerCall> Policy<S, R> for Timeout {
    type Future = TimeoutCall<S, R>;

    fn call(&self, inner: &mut S, request: R) -> TimeoutCall<S, R> {
        TimeoutCall {
            limit: self.limit_of(request.call().method.as_str()),
            context: request.context().cloned(),
            sleep: None,
            call: Some(ReadyCall::new(inner, request)),
        }
    }
}

pin_project! {
    /// A call with a time limit.
    pub struct TimeoutCall<S, R>
    where
        S: Service<R>,
        R: LayerCall,
    {
        #[pin]
        call: Option<ReadyCall<S, R>>,
        limit: Duration,
        context: Option<Context>,
        // Created when the call first has to wait. Most calls have ended by then.
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl<S: CallService<R>, R: LayerCall> Future for TimeoutCall<S, R> {
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(call) = this.call.as_mut().as_pin_mut()
            && let Poll::Ready(outcome) = call.poll(poller)
        {
            return Poll::Ready(outcome);
        }
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep(*this.limit)));
        }
        match this.sleep.as_pin_mut().map(|sleep| sleep.poll(poller)) {
            Some(Poll::Ready(())) => {
                this.call.set(None);
                if let Some(context) = this.context.take() {
                    context.cancel();
                }
                Poll::Ready(Err(R::timed_out(*this.limit)))
            }
            _ => Poll::Pending,
        }
    }
}
