//! A limit on the calls that run at once in the whole service: [`Concurrency`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::{ErrorObject, RawJson};
use pin_project_lite::pin_project;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

use super::policy::Policy;
use crate::BoxFuture;
use crate::service::{CallService, LayerCall, ReadyCall};

/// The default length of the queue.
const QUEUE: usize = 1_024;

/// Limits the calls that run at once in the whole service. Clones share the limit.
///
/// A call over the limit waits in a bounded queue. A call for which the queue has no room is rejected with
/// -32009. [`Limits::in_flight`](crate::Limits::in_flight) limits one connection; this layer limits all of
/// them together.
///
/// A handler keeps its permit while it calls its caller back. Calls that the caller makes meanwhile need
/// permits too, so leave enough, or add a [`Timeout`](super::Timeout).
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
    permits: Arc<Semaphore>,
    queued: Arc<AtomicUsize>,
    queue: usize,
}

impl Concurrency {
    /// Allows this many calls to run at once (at least one), and 1,024 more to wait.
    pub fn new(limit: usize) -> Self {
        let permits = Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS)));
        Self { permits, queued: Arc::default(), queue: QUEUE }
    }

    /// Sets the number of calls that may wait. Calls beyond that are rejected with -32009. Clones that exist
    /// keep their number.
    #[must_use]
    pub fn queue(mut self, calls: usize) -> Self {
        self.queue = calls;
        self
    }

    /// Counts one more call in the queue, unless the queue is full.
    fn enqueue(&self) -> Option<QueueSlot> {
        let before = self.queued.fetch_add(1, Ordering::AcqRel);
        let slot = QueueSlot(self.queued.clone());
        (before < self.queue).then_some(slot)
    }
}

/// One call in the queue, until it is dropped.
struct QueueSlot(Arc<AtomicUsize>);

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<S: CallService<R>, R: LayerCall> Policy<S, R> for Concurrency {
    type Future = ConcurrencyCall<S, R>;

    fn call(&self, inner: &mut S, request: R) -> ConcurrencyCall<S, R> {
        if let Ok(permit) = self.permits.clone().try_acquire_owned() {
            let call = Some(ReadyCall::new(inner, request));
            return ConcurrencyCall { call, permit: Some(permit), queued: None };
        }
        let Some(slot) = self.enqueue() else {
            let busy = ErrorObject::server_busy("too many calls wait");
            let call = Some(ReadyCall::rejected(busy));
            return ConcurrencyCall { call, permit: None, queued: None };
        };
        let permit = Box::pin(self.permits.clone().acquire_owned());
        let queued = QueuedCall { permit, service: inner.clone(), request, _slot: slot };
        ConcurrencyCall { call: None, permit: None, queued: Some(queued) }
    }
}

/// A call in the queue.
struct QueuedCall<S, R> {
    permit: BoxFuture<'static, Result<OwnedSemaphorePermit, AcquireError>>,
    service: S,
    request: R,
    _slot: QueueSlot,
}

pin_project! {
    /// A call that has a permit, or waits for one.
    pub struct ConcurrencyCall<S, R>
    where
        S: Service<R>,
        R: LayerCall,
    {
        // Declared first, so that it is dropped before the permit is released.
        #[pin]
        call: Option<ReadyCall<S, R>>,
        permit: Option<OwnedSemaphorePermit>,
        queued: Option<QueuedCall<S, R>>,
    }
}

impl<S: CallService<R>, R: LayerCall> Future for ConcurrencyCall<S, R> {
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(queued) = this.queued {
            // The semaphore is never closed.
            *this.permit = ready!(queued.permit.as_mut().poll(poller)).ok();
        }
        if let Some(QueuedCall { mut service, request, .. }) = this.queued.take() {
            this.call.set(Some(ReadyCall::new(&mut service, request)));
        }
        match this.call.as_pin_mut() {
            Some(call) => call.poll(poller),
            None => Poll::Pending,
        }
    }
}
