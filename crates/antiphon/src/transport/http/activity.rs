//! The requests in flight on one HTTP connection, for its watchdog.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context as Poller, Poll};

use futures_util::task::AtomicWaker;
use http::Version;

/// The requests in flight on one connection.
#[derive(Debug, Default)]
pub(super) struct RequestActivity {
    running: AtomicUsize,
    /// The bodies of responses that the connection could poll and does not.
    unread: AtomicUsize,
    served: AtomicU64,
    /// A part of a head has arrived. Only the fast path sets it.
    has_partial_head: AtomicBool,
    /// A watchdog reports bodies that stall.
    is_watched: bool,
    stalled: AtomicBool,
    /// A reader waits for a body.
    is_awaited: AtomicBool,
    /// The reader of a body.
    reader: AtomicWaker,
}

impl RequestActivity {
    pub(super) fn watched() -> Arc<Self> {
        Arc::new(Self { is_watched: true, ..Self::default() })
    }

    /// The activity whose watchdog reports a stalled body. The streams of HTTP/2 share a connection,
    /// and one may stall while the others move: they use timers.
    pub(super) fn watch(self: &Arc<Self>, version: Version) -> Option<Arc<Self>> {
        (self.is_watched && version < Version::HTTP_2).then(|| self.clone())
    }

    /// Counts a request that was served at once.
    pub(super) fn count_served(&self) {
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_active(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Whether a reader waits for the body of a request.
    pub(super) fn has_awaited_body(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// Whether the connection does not poll the body of a response. hyper polls no body without a
    /// window of HTTP/2.
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread.load(Ordering::Relaxed) > 0
    }

    pub(super) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Whether only a part of a head has arrived.
    pub(super) fn has_partial_head(&self) -> bool {
        self.has_partial_head.load(Ordering::Relaxed)
    }

    pub(super) fn set_partial_head(&self, is_partial: bool) {
        self.has_partial_head.store(is_partial, Ordering::Relaxed);
    }

    /// Reports that no bytes arrive. Fails a body that is being read.
    pub(super) fn stall(&self) {
        if let Some(reader) = self.reader.take() {
            self.stalled.store(true, Ordering::Release);
            reader.wake();
        }
    }

    /// Withdraws the report: bytes have arrived.
    pub(super) fn resume(&self) {
        drop(self.reader.take());
        self.is_awaited.store(false, Ordering::Relaxed);
        self.stalled.store(false, Ordering::Release);
    }

    /// Ready when the watchdog reports a stall.
    pub(super) fn poll_stalled(&self, poller: &mut Poller<'_>) -> Poll<()> {
        self.is_awaited.store(true, Ordering::Relaxed);
        self.reader.register(poller.waker());
        if self.stalled.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn begin(self: &Arc<Self>) -> ActiveRequest {
        self.running.fetch_add(1, Ordering::Relaxed);
        ActiveRequest(self.clone())
    }
}

/// One request in flight, until it is dropped.
pub(super) struct ActiveRequest(Arc<RequestActivity>);

impl ActiveRequest {
    pub(super) fn activity(&self) -> &Arc<RequestActivity> {
        &self.0
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.served.fetch_add(1, Ordering::Relaxed);
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of a response that keeps its request in flight until it is dropped.
pub(super) struct ActiveBody {
    active: ActiveRequest,
    is_unread: bool,
}

impl ActiveBody {
    /// Begins as unread.
    pub(super) fn new(active: ActiveRequest) -> Self {
        let mut body = Self { active, is_unread: false };
        body.set_unread(true);
        body
    }

    /// Records whether the next poll of the body is up to the connection.
    pub(super) fn set_unread(&mut self, is_unread: bool) {
        let unread = &self.active.0.unread;
        match (std::mem::replace(&mut self.is_unread, is_unread), is_unread) {
            (false, true) => drop(unread.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(unread.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

impl Drop for ActiveBody {
    fn drop(&mut self) {
        self.set_unread(false);
    }
}
