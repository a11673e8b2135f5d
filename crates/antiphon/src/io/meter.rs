//! Progress counters of a stream: bytes read, bytes written, and whether a message is incomplete.
//!
//! The code that reads and writes the stream updates the counters; the timers that detect a stall read
//! them. The counters never block.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

/// The progress counters of one connection. The transport updates them; stall detection reads them.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    read: AtomicU64,
    written: AtomicU64,
    /// The value of `read` when the last message was complete.
    complete: AtomicU64,
    /// The transport reports that a message has begun.
    begun: AtomicBool,
    /// The stream did not accept the last write.
    blocked: AtomicBool,
}

impl Meter {
    /// Records a read of this many bytes.
    pub(crate) fn read(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Records the outcome of a write.
    pub(crate) fn wrote(&self, written: &Poll<std::io::Result<usize>>) {
        self.blocked.store(written.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Ok(bytes)) = written {
            self.written.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
    }

    /// Records the outcome of a flush, which is like a write that counts no bytes.
    #[cfg(feature = "http")]
    pub(crate) fn flushed(&self, flushed: &Poll<std::io::Result<()>>) {
        if flushed.is_pending() || self.is_blocked() {
            self.blocked.store(flushed.is_pending(), Ordering::Relaxed);
        }
    }

    #[cfg(feature = "ws")]
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Records that all bytes read so far belong to complete messages, unless a message has `begun`.
    pub(crate) fn record_boundary(&self, begun: bool) {
        self.complete.store(self.read.load(Ordering::Relaxed), Ordering::Relaxed);
        self.begun.store(begun, Ordering::Relaxed);
    }

    #[cfg(feature = "http")]
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Bytes read and bytes written, together.
    pub(crate) fn moved(&self) -> u64 {
        self.read.load(Ordering::Relaxed) + self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn is_mid_message(&self) -> bool {
        let read = self.read.load(Ordering::Relaxed);
        self.begun.load(Ordering::Relaxed) || read > self.complete.load(Ordering::Relaxed)
    }
}
