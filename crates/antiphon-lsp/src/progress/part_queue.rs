//! A queue of the parts of a result that have arrived but are not read yet.
//!
//! Invariant: the total size is at most [`MAX_BYTES`]. If a part exceeds it, the queue accepts no more parts, and ends
//! with an error.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll, Waker};

use antiphon::{CallError, RawJson};

const MAX_BYTES: usize = 256 << 20;

/// A queue from the reader of a connection to one stream.
#[derive(Default)]
pub(super) struct PartQueue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    parts: VecDeque<RawJson>,
    bytes: usize,
    is_over_limit: bool,
    reader: Option<Waker>,
}

impl PartQueue {
    /// Adds a part. It never waits, because the reader of the connection calls it.
    pub(super) fn push(&self, part: RawJson) {
        let mut waiting = self.waiting();
        if waiting.is_over_limit {
            return;
        }
        waiting.bytes += part.as_str().len();
        waiting.is_over_limit = waiting.bytes > MAX_BYTES;
        if !waiting.is_over_limit {
            waiting.parts.push_back(part);
        }
        let reader = waiting.reader.take();
        drop(waiting);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Closes the queue: later parts are dropped.
    pub(super) fn ignore(&self) {
        let mut waiting = self.waiting();
        waiting.is_over_limit = true;
        waiting.parts.clear();
    }

    pub(super) fn poll(&self, poller: &Poller<'_>) -> Poll<Result<RawJson, CallError>> {
        let mut waiting = self.waiting();
        if let Some(part) = waiting.parts.pop_front() {
            waiting.bytes -= part.as_str().len();
            return Poll::Ready(Ok(part));
        }
        if waiting.is_over_limit {
            let cause = format!(
                "the unread parts of the result exceed {MAX_BYTES} bytes: read the stream faster"
            );
            return Poll::Ready(Err(CallError::OverLimit(cause.into())));
        }
        waiting.reader = Some(poller.waker().clone());
        Poll::Pending
    }

    /// Ignores lock poisoning, because no code panics while it holds the lock.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_that_wait_are_bounded() {
        let parts = PartQueue::default();
        let poller = Poller::from_waker(Waker::noop());
        let part = RawJson::parse("\"four\"").unwrap();
        parts.waiting().bytes = MAX_BYTES - 2 * part.as_str().len();
        for _ in 0..4 {
            parts.push(part.clone());
        }
        let kept = (0..9).take_while(|_| matches!(parts.poll(&poller), Poll::Ready(Ok(_)))).count();
        assert_eq!(kept, 2);
        let Poll::Ready(Err(error)) = parts.poll(&poller) else { panic!("no error") };
        assert!(matches!(error, CallError::OverLimit(_)), "{error:?}");
    }
}
