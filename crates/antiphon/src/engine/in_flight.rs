//! How many requests may run at once?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context as Poller;

use futures_util::task::AtomicWaker;

/// How many requests run at once; shared by everything on one connection.
pub(crate) struct InFlight {
    running: AtomicUsize,
    limit: usize,
    /// Who waits for room.
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

    /// The same, and wakes whoever asks when it is full no more.
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

    /// Only the connection's own task admits, so that a look and a step are one.
    pub(crate) fn acquire(self: &Arc<Self>) -> InFlightPermit {
        self.running.fetch_add(1, Ordering::AcqRel);
        InFlightPermit(self.clone())
    }
}

/// The right of one request to run.
pub(crate) struct InFlightPermit(Arc<InFlight>);

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == self.0.limit {
            self.0.waiting.wake();
        }
    }
}
