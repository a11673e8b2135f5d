//! The queue between the handlers and the event stream of a response.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit, TryAcquireError};
use tokio_util::sync::CancellationToken;

use super::event_stream::EventError;

/// The events that wait for the client, bounded in count and bytes.
pub(super) struct EventQueue {
    pub(super) state: Mutex<QueueState>,
    /// One permit per event that the queue can take. Closed with the stream.
    pub(super) capacity: Semaphore,
    /// One permit per byte that the queue can take. Closed with the stream.
    pub(super) byte_capacity: Semaphore,
    /// The permits of `byte_capacity` while the queue is empty: a larger event takes them all.
    pub(super) max_bytes: u32,
    /// Cancelled when the stream is dropped or aborted.
    pub(super) closed: CancellationToken,
    pub(super) stall_timeout: Duration,
}

#[derive(Default)]
pub(super) struct QueueState {
    pub(super) events: VecDeque<Bytes>,
    /// The permits of the queued events. The last event of a stream has none.
    pub(super) event_permits: usize,
    pub(super) byte_permits: usize,
    /// The number of times that the client has read from the queue.
    pub(super) reads: u64,
    pub(super) senders: usize,
    pub(super) is_finished: bool,
    pub(super) is_aborted: bool,
    pub(super) reader: Option<Waker>,
}

impl EventQueue {
    pub(super) fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the reader.
    pub(super) fn change(&self, change: impl FnOnce(&mut QueueState)) {
        let reader = {
            let mut state = self.state();
            change(&mut state);
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// The permits that an event of this size takes.
    fn byte_permits(&self, bytes: usize) -> u32 {
        u32::try_from(bytes).map_or(self.max_bytes, |bytes| bytes.min(self.max_bytes))
    }

    pub(super) async fn acquire(&self, bytes: usize) -> Result<EventPermit<'_>, AcquireError> {
        let event = self.capacity.acquire().await?;
        let bytes = self.byte_capacity.acquire_many(self.byte_permits(bytes)).await?;
        Ok(EventPermit { queue: self, event, bytes })
    }

    pub(super) fn try_acquire(&self, bytes: usize) -> Result<EventPermit<'_>, TryAcquireError> {
        let event = self.capacity.try_acquire()?;
        let bytes = self.byte_capacity.try_acquire_many(self.byte_permits(bytes))?;
        Ok(EventPermit { queue: self, event, bytes })
    }

    pub(super) fn close(&self) {
        self.capacity.close();
        self.byte_capacity.close();
    }

    pub(super) fn abort(&self) {
        self.close();
        self.closed.cancel();
        self.change(|state| {
            state.is_aborted = true;
            state.events.clear();
        });
    }
}

/// The right to queue one event. Returned to the queue if it is dropped.
pub(super) struct EventPermit<'q> {
    queue: &'q EventQueue,
    event: SemaphorePermit<'q>,
    bytes: SemaphorePermit<'q>,
}

impl EventPermit<'_> {
    /// Queues an event that is encoded.
    pub(super) fn send(self, event: Bytes) -> Result<(), EventError> {
        let mut sent = Err(EventError::Closed);
        self.queue.change(|state| {
            if !state.is_finished && !state.is_aborted {
                state.events.push_back(event);
                state.event_permits += self.event.num_permits();
                state.byte_permits += self.bytes.num_permits();
                self.event.forget();
                self.bytes.forget();
                sent = Ok(());
            }
        });
        sent
    }
}
