//! How long may a call take?
//!
//! Counted from when the call reaches this layer, so the time that it waits further in is included. A
//! call that is late is dropped, its token is cancelled, and it is answered -32012.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::RawJson;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_layer::Layer;
use tower_service::Service;

use super::pass::Passing;
use super::passage::Passage;
use super::{BoxError, Wrapped, always_ready};
use crate::context::Context;

/// Ends calls that take too long.
///
/// It is a time for each call: [`Limits::request_timeout`](crate::Limits::request_timeout) is one for a
/// whole batch.
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
    /// Ends every call after this time.
    pub fn new(limit: Duration) -> Self {
        Self { limit, methods: Arc::default() }
    }

    /// Another time for this method.
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

impl<S> Layer<S> for Timeout {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { policy: self.clone(), inner }
    }
}

impl<S, R> Service<R> for Wrapped<Timeout, S>
where
    S: Service<R, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Response = RawJson;
    type Error = R::Error;
    type Future = Timed<S, R>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), R::Error>> {
        always_ready(poller)
    }

    fn call(&mut self, request: R) -> Self::Future {
        Timed {
            limit: self.policy.limit_of(request.call().method.as_str()),
            context: request.context().cloned(),
            sleep: None,
            passage: Some(Passage::enter(&mut self.inner, request)),
        }
    }
}

pin_project! {
    /// A call with a time limit.
    pub struct Timed<S, R>
    where
        S: Service<R>,
        R: Passing,
    {
        #[pin]
        passage: Option<Passage<S, R>>,
        limit: Duration,
        context: Option<Context>,
        // Made when it has to wait: most calls are over by then.
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl<S, R> Future for Timed<S, R>
where
    S: Service<R, Response = RawJson>,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(passage) = this.passage.as_mut().as_pin_mut()
            && let Poll::Ready(outcome) = passage.poll(poller)
        {
            return Poll::Ready(outcome);
        }
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep(*this.limit)));
        }
        match this.sleep.as_pin_mut().map(|sleep| sleep.poll(poller)) {
            Some(Poll::Ready(())) => {
                this.passage.set(None);
                if let Some(context) = this.context.take() {
                    context.cancel();
                }
                Poll::Ready(Err(R::timed_out(*this.limit)))
            }
            _ => Poll::Pending,
        }
    }
}
