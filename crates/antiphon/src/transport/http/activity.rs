//! What goes on on one HTTP connection, for whoever watches it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context as Poller, Poll};

use futures_util::task::AtomicWaker;

/// What goes on on one connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    running: AtomicUsize,
    served: AtomicU64,
    /// A head has begun and is not whole; told only by who reads it here.
    asking: AtomicBool,
    /// Somebody watches, and tells of a body that does not come.
    pub(super) watched: bool,
    stalled: AtomicBool,
    /// Who waits for a body.
    reader: AtomicWaker,
}

impl Activity {
    pub(super) fn watched() -> Arc<Self> {
        Arc::new(Self { watched: true, ..Self::default() })
    }

    /// A request was served that was never under way.
    pub(super) fn served_one(&self) {
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_busy(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    pub(super) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Whether a head has begun and is not whole.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed)
    }

    pub(super) fn set_asking(&self, asking: bool) {
        self.asking.store(asking, Ordering::Relaxed);
    }

    /// Nothing moves: if a body is being waited for, it will not come.
    pub(super) fn stall(&self) {
        if let Some(reader) = self.reader.take() {
            self.stalled.store(true, Ordering::Release);
            reader.wake();
        }
    }

    /// It has come after all.
    pub(super) fn moves_on(&self) {
        drop(self.reader.take());
        self.stalled.store(false, Ordering::Release);
    }

    /// Waits to be told so.
    pub(super) fn poll_stalled(&self, poller: &mut Poller<'_>) -> Poll<()> {
        self.reader.register(poller.waker());
        if self.stalled.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.running.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }
}

/// One request under way.
pub(super) struct Busy(Arc<Activity>);

impl Busy {
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.served.fetch_add(1, Ordering::Relaxed);
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
