//! How many calls may run at once, in the whole service?
//!
//! [`Limits::in_flight`](crate::Limits::in_flight) bounds one connection; this bounds all of them
//! together. So many more may wait, and past that calls are refused: no queue is without bound.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::{ErrorObject, RawJson};
use pin_project_lite::pin_project;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_layer::Layer;
use tower_service::Service;

use super::pass::Passing;
use super::passage::Passage;
use super::{BoxError, Wrapped, always_ready};
use crate::BoxFuture;

/// How many calls wait where nothing else is said.
const QUEUE: usize = 1_024;

/// Lets so many calls run at once. Clones share the count.
///
/// A handler that waits for its caller to call again keeps its place meanwhile: leave room for that,
/// or put a [`Timeout`](super::Timeout) around it.
///
/// ```
/// use antiphon::layer::Concurrency;
/// use antiphon::{Handler, Router};
///
/// # let router = Router::new();
/// let service = router.layer(Concurrency::new(64).queue(256));
/// ```
#[derive(Clone, Debug)]
pub struct Concurrency {
    places: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    queue: usize,
}

impl Concurrency {
    /// Lets this many run at once, at least one, and 1,024 wait.
    pub fn new(limit: usize) -> Self {
        let places = Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS)));
        Self { places, waiting: Arc::default(), queue: QUEUE }
    }

    /// Lets this many wait; what comes then is refused with -32009.
    #[must_use]
    pub fn queue(mut self, waiting: usize) -> Self {
        self.queue = waiting;
        self
    }

    /// A place in the queue, if there is one.
    fn queue_up(&self) -> Option<Queued> {
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let queued = Queued(self.waiting.clone());
        (before < self.queue).then_some(queued)
    }
}

/// A place in the queue.
struct Queued(Arc<AtomicUsize>);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<S> Layer<S> for Concurrency {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { policy: self.clone(), inner }
    }
}

impl<S, R> Service<R> for Wrapped<Concurrency, S>
where
    S: Service<R, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Response = RawJson;
    type Error = R::Error;
    type Future = Admitted<S, R>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), R::Error>> {
        always_ready(poller)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let policy = &self.policy;
        if let Ok(place) = policy.places.clone().try_acquire_owned() {
            let passage = Some(Passage::enter(&mut self.inner, request));
            return Admitted { passage, place: Some(place), waiting: None };
        }
        let Some(queued) = policy.queue_up() else {
            let busy = ErrorObject::server_busy("too many calls wait");
            return Admitted { passage: Some(Passage::refuse(busy)), place: None, waiting: None };
        };
        request.hold_up();
        let place = Box::pin(policy.places.clone().acquire_owned());
        let waiting = Waiting { place, service: self.inner.clone(), request, _queued: queued };
        Admitted { passage: None, place: None, waiting: Some(waiting) }
    }
}

/// A call in the queue.
struct Waiting<S, R> {
    place: BoxFuture<'static, Result<OwnedSemaphorePermit, tokio::sync::AcquireError>>,
    service: S,
    request: R,
    _queued: Queued,
}

pin_project! {
    /// A call that has a place, or waits for one.
    pub struct Admitted<S, R>
    where
        S: Service<R>,
        R: Passing,
    {
        // Dropped before the place is given back.
        #[pin]
        passage: Option<Passage<S, R>>,
        place: Option<OwnedSemaphorePermit>,
        waiting: Option<Waiting<S, R>>,
    }
}

impl<S, R> Future for Admitted<S, R>
where
    S: Service<R, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(waiting) = this.waiting {
            // The semaphore is never closed.
            *this.place = ready!(waiting.place.as_mut().poll(poller)).ok();
        }
        if let Some(Waiting { mut service, request, .. }) = this.waiting.take() {
            this.passage.set(Some(Passage::enter(&mut service, request)));
        }
        match this.passage.as_pin_mut() {
            Some(passage) => passage.poll(poller),
            None => Poll::Pending,
        }
    }
}
