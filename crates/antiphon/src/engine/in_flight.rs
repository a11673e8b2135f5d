//! The limit of requests in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context as Poller;

use futures_util::task::AtomicWaker;

/// The number of requests in flight and its limit, shared by all payloads of one connection.
pub(crate) struct InFlight {
    running: AtomicUsize,
    limit: usize,
    /// The task to wake when the number falls below the limit.
    waiting: AtomicWaker,
}

impl InFlight {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let waiting = AtomicWaker::new();
        Arc::new(Self { running: AtomicUsize::new(0), limit: limit.max(1), waiting })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.running.load(Ordering::Acquire) >= self.limit
    }

    /// Like [`is_full`](Self::is_full), and wakes the task when the number falls below the limit.
    pub(crate) fn poll_full(&self, poller: &mut Poller<'_>) -> bool {
        if !self.is_full() {
            return false;
        }
        self.waiting.register(poller.waker());
        self.is_full()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
    }

    /// Counts one more request. Only the task of the connection calls it, so the number cannot rise
    /// between a check of the limit and this call.
    pub(crate) fn acquire(self: &Arc<Self>) -> InFlightPermit {
        self.running.fetch_add(1, Ordering::AcqRel);
        InFlightPermit(self.clone())
    }
}

/// Counts one request as in flight until it is dropped.
pub(crate) struct InFlightPermit(Arc<InFlight>);

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == self.0.limit {
            self.0.waiting.wake();
        }
    }
}
