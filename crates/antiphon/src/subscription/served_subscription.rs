//! The serving side of one subscription: forwards items from the handler to the connection.
//!
//! An item goes directly to the queue of the connection while it has room, and waits here otherwise. No
//! item goes out before the reply: the dispatcher calls `release` when the reply is queued.
//!
//! Lock order: the lock of the connection may be taken while the lock of a channel is held, and never the
//! other way round. Tasks are woken after the lock is released.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll, Waker};

use antiphon_core::{ErrorObject, Id, RawJson};
use bytes::{Bytes, BytesMut};
use tokio_util::sync::CancellationToken;

use super::item_message::{self, Closing};
use super::item_queue::ItemQueue;
use super::sink::SinkClosed;
use super::topic::{Overflow, Topic};

/// The connection that carries the items of a served subscription.
pub(crate) trait ItemWriter: Send + Sync {
    /// Queues a message of about this length. Returns false when the connection has ended. Pending
    /// when the queue is full: then nothing was written, and the poller is woken once there is room.
    fn poll_write(
        &self,
        len: usize,
        write: &mut dyn FnMut(&mut BytesMut),
        poller: Option<&mut Poller<'_>>,
    ) -> Poll<bool>;

    /// Removes the subscription from the table of the connection.
    fn forget(&self, id: &Id);
}

/// One served subscription.
pub(crate) struct ServedSubscription {
    pub(crate) id: Id,
    topic: Arc<Topic>,
    /// The first bytes of every item message.
    head: Bytes,
    writer: Arc<dyn ItemWriter>,
    /// Cancelled when the subscription ends.
    over: CancellationToken,
    state: Mutex<ServedState>,
}

struct ServedState {
    queue: ItemQueue,
    /// The reply may be sent: the handler has sent an item or called `accept`.
    accepted: bool,
    /// The reply is queued.
    released: bool,
    /// No more items are accepted. The waiting items go out, then this reason.
    closing: Option<Closing>,
    /// Nothing more goes out.
    ended: bool,
    /// The task that forwards items, or the handler before it has accepted.
    task: Option<Waker>,
    senders: Vec<Waker>,
}

impl ServedState {
    fn wake(&mut self) -> Woken {
        Woken { task: self.task.take(), senders: Vec::new() }
    }

    fn wake_all(&mut self) -> Woken {
        Woken { task: self.task.take(), senders: std::mem::take(&mut self.senders) }
    }
}

/// Wakes its wakers when it is dropped. Drop it after the lock is released.
#[derive(Default)]
struct Woken {
    task: Option<Waker>,
    senders: Vec<Waker>,
}

impl Drop for Woken {
    fn drop(&mut self) {
        self.task.take().into_iter().chain(self.senders.drain(..)).for_each(Waker::wake);
    }
}

/// The divisor of the connection's byte limit that gives the byte limit of one subscription. A connection
/// serves many subscriptions.
const QUEUE_DIVISOR: usize = 16;

impl ServedSubscription {
    pub(crate) fn new(
        id: Id,
        topic: Arc<Topic>,
        writer: Arc<dyn ItemWriter>,
        queue_bytes: usize,
        over: CancellationToken,
    ) -> Self {
        let head = item_message::head(&topic.item, &id);
        let state = ServedState {
            queue: ItemQueue::new(topic.buffer, queue_bytes / QUEUE_DIVISOR),
            accepted: false,
            released: false,
            closing: None,
            ended: false,
            task: None,
            senders: Vec::new(),
        };
        Self { id, topic, head, writer, over, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, ServedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the topic: the notification that carries its items.
    pub(super) fn topic(&self) -> &str {
        &self.topic.item
    }

    /// Accepts the subscription, so that the reply is sent.
    pub(crate) fn accept(&self) {
        let mut state = self.state();
        state.accepted = true;
        let woken = state.wake();
        drop(state);
        drop(woken);
    }

    /// Whether the reply may be sent; wakes the poller when it may.
    pub(crate) fn poll_accepted(&self, poller: &mut Poller<'_>) -> bool {
        let mut state = self.state();
        state.task = Some(poller.waker().clone());
        state.accepted
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.state().accepted
    }

    /// Lets items go out. Called when the reply is queued.
    pub(crate) fn release(&self) {
        let mut state = self.state();
        state.released = true;
        let woken = state.wake();
        drop(state);
        drop(woken);
    }

    /// Accepts an item. If it must wait for room, the item stays with the caller.
    pub(crate) fn poll_push(
        &self,
        item: &mut Option<RawJson>,
        poller: Option<&mut Poller<'_>>,
    ) -> Poll<Result<(), SinkClosed>> {
        let mut state = self.state();
        let Some(next) = item.take() else { return Poll::Ready(Ok(())) };
        if state.ended || state.closing.is_some() {
            return Poll::Ready(Err(SinkClosed));
        }
        let first = !std::mem::replace(&mut state.accepted, true);
        let is_idle = state.queue.is_empty();
        if state.released
            && is_idle
            && let Poll::Ready(written) = self.write(&mut state, &next, None)
        {
            return Poll::Ready(if written { Ok(()) } else { Err(SinkClosed) });
        }
        let mut outcome = Poll::Ready(Ok(()));
        match self.topic.overflow {
            _ if state.queue.has_room(&next) => state.queue.push(next),
            Overflow::DropOldest => drop(state.queue.push_dropping_oldest(next)),
            Overflow::Close => {
                state.closing = Some(Closing::Failed(too_slow()));
                outcome = Poll::Ready(Err(SinkClosed));
            }
            Overflow::Wait => {
                *item = Some(next);
                outcome = Poll::Pending;
                if let Some(poller) = poller
                    && !state.senders.iter().any(|waker| waker.will_wake(poller.waker()))
                {
                    state.senders.push(poller.waker().clone());
                }
            }
        }
        // If other items wait already, the task is already waiting for room in the connection.
        let woken = (first || is_idle || state.closing.is_some()).then(|| state.wake());
        drop(state);
        drop(woken);
        outcome
    }

    /// Passes an item to the connection. Pending if the connection has no room; then nothing was written.
    fn write(
        &self,
        state: &mut ServedState,
        item: &RawJson,
        poller: Option<&mut Poller<'_>>,
    ) -> Poll<bool> {
        let lost = state.queue.lost();
        let len = item_message::about_len(&self.head, item);
        let mut write = |out: &mut BytesMut| item_message::encode_item(&self.head, lost, item, out);
        let written = self.writer.poll_write(len, &mut write, poller);
        if written == Poll::Ready(true) {
            state.queue.take_lost();
        }
        written
    }

    /// Passes waiting items to the connection. Ready when the subscription has ended.
    pub(crate) fn poll_pump(&self, poller: &mut Poller<'_>) -> Poll<()> {
        let mut state = self.state();
        state.task = Some(poller.waker().clone());
        let mut woken = Woken::default();
        let pumped = self.pump(&mut state, poller, &mut woken);
        drop(state);
        drop(woken);
        pumped
    }

    fn pump(
        &self,
        state: &mut ServedState,
        poller: &mut Poller<'_>,
        woken: &mut Woken,
    ) -> Poll<()> {
        if state.ended {
            return Poll::Ready(());
        }
        if !state.released {
            return Poll::Pending;
        }
        while let Some(item) = state.queue.front().cloned() {
            match self.write(state, &item, Some(poller)) {
                Poll::Pending => return Poll::Pending,
                // The connection has ended.
                Poll::Ready(false) => return Poll::Ready(()),
                Poll::Ready(true) => drop(state.queue.pop()),
            }
            woken.senders.append(&mut state.senders);
        }
        let Some(closing) = &state.closing else { return Poll::Pending };
        if self.topic.notifies_end || matches!(closing, Closing::Failed(_)) {
            let lost = state.queue.lost();
            let mut write =
                |out: &mut BytesMut| item_message::encode_closing(&self.head, lost, closing, out);
            let len = self.head.len() + 256;
            if self.writer.poll_write(len, &mut write, Some(poller)).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Accepts no more items; the waiting items still go out. The first reason counts. Only an error
    /// replaces a normal end, because a handler that fails drops its sink before its error is known.
    pub(crate) fn close(&self, closing: Closing) {
        let mut state = self.state();
        if matches!(
            (&state.closing, &closing),
            (None, _) | (Some(Closing::Over(_)), Closing::Failed(_))
        ) {
            state.closing = Some(closing);
        }
        let woken = state.wake_all();
        drop(state);
        drop(woken);
        self.over.cancel();
    }

    pub(crate) fn fail(&self, error: ErrorObject) {
        self.close(Closing::Failed(error));
    }

    /// Ends the subscription at once: the peer has unsubscribed, or the connection has ended.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.queue.clear();
        let woken = state.wake_all();
        drop(state);
        drop(woken);
        self.over.cancel();
    }

    pub(crate) fn is_closed(&self) -> bool {
        let state = self.state();
        state.ended || state.closing.is_some()
    }

    pub(crate) fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Ends the subscription and removes it from the table of its connection.
    pub(crate) fn forget(&self) {
        self.writer.forget(&self.id);
        self.end();
    }
}

fn too_slow() -> ErrorObject {
    ErrorObject::server_busy("the subscriber does not consume items fast enough")
}
