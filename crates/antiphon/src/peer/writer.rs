//! The bounded write queue of a connection. All messages that are ready are sent in one write.
//!
//! [`Outbox`] is the shared end: handles and tasks push into it under the lock of `Shared`. [`Writer`]
//! is the end of the connection task, without a lock: replies that are ready at once are pushed there
//! directly.
//!
//! Calls and replies are bounded separately. A sender of calls and notifications waits for capacity.
//! Replies never wait, because a waiting handler could hold something that its own reply needs; instead,
//! the reader stops admitting requests. If both were counted together, two peers that send much to each
//! other would both stop reading.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};

use super::Shared;
use super::transport::{Transport, TransportError};
use crate::call::Stop;
use crate::engine::ReplyBuffer;
use crate::tap::Direction;

/// An encoded message in the write queue.
pub(super) enum Outgoing {
    /// A message that does not wait for capacity: the reply to a request of the peer, a notification that follows
    /// the reply, or a notification of a destructor.
    Reply(Bytes),
    /// A call, notification or cancellation of this side.
    Call(Bytes),
}

/// The messages that handles and tasks have queued, for the connection to collect.
pub(super) struct Outbox {
    messages: VecDeque<Outgoing>,
    /// The buffer in which calls are encoded. Each one is split off.
    scratch: BytesMut,
    /// The number of bytes of calls, here and in the writer.
    call_bytes: usize,
    limit: usize,
    /// The waker of the connection task.
    connection: Option<Waker>,
    /// The wakers of the senders that wait for capacity.
    senders: Vec<Waker>,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        Self {
            messages: VecDeque::new(),
            scratch: BytesMut::new(),
            call_bytes: 0,
            limit,
            connection: None,
            senders: Vec::new(),
        }
    }

    /// Encodes a call or notification of about this length, and queues it. The caller must wake the
    /// connection.
    pub(super) fn write(&mut self, len: usize, write: impl FnOnce(&mut BytesMut)) {
        if self.scratch.capacity() < len {
            self.scratch.reserve(len.max(SCRATCH));
        }
        write(&mut self.scratch);
        let message = self.scratch.split().freeze();
        self.push(Outgoing::Call(message));
    }

    /// Gives back the memory that an idle connection does not need.
    fn release(&mut self) {
        self.scratch = BytesMut::new();
        self.messages.shrink_to_fit();
    }

    /// Queues a message. The caller must wake the connection.
    pub(super) fn push(&mut self, message: Outgoing) {
        if let Outgoing::Call(message) = &message {
            self.call_bytes += message.len();
        }
        self.messages.push_back(message);
    }

    pub(super) fn has_room(&self) -> bool {
        self.call_bytes < self.limit
    }

    /// Registers a sender that waits for capacity. Returns false if it already waits.
    pub(super) fn add_sender(&mut self, waker: &Waker) -> bool {
        let is_new = !self.senders.iter().any(|sender| sender.will_wake(waker));
        if is_new {
            self.senders.push(waker.clone());
        }
        is_new
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn has_waiting_senders(&self) -> bool {
        !self.senders.is_empty()
    }

    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        self.connection.take()
    }

    /// Drops the queued messages, and returns the wakers of the waiting senders.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.messages.clear();
        std::mem::take(&mut self.senders)
    }
}

/// The end of the write queue that the connection task owns.
#[derive(Default)]
pub(super) struct Writer {
    messages: VecDeque<Outgoing>,
    /// The number of bytes of queued replies.
    reply_bytes: usize,
    /// The number of bytes of queued calls.
    call_bytes: usize,
    /// The value of `call_bytes` that was last stored in the outbox.
    reported: usize,
    /// The waker that was last stored in the outbox.
    waker: Option<Waker>,
    unflushed: bool,
    /// The buffer in which replies are encoded. Each one is split off.
    pub(super) scratch: ReplyBuffer,
    /// The number of messages that the sink has accepted.
    pub(super) sent: u64,
}

/// The content of the outbox when it was collected.
pub(super) struct Collected {
    /// The stop that a handle has requested, if any.
    pub(super) stop: Option<Stop>,
    /// Whether there were messages.
    pub(super) has_messages: bool,
}

/// The minimum capacity that the buffer of the outbox is grown by.
const SCRATCH: usize = 4 * 1024;

impl Writer {
    pub(super) fn new() -> Self {
        Self { scratch: ReplyBuffer::pooled(), ..Self::default() }
    }

    /// Gives back the memory that an idle connection does not need.
    pub(super) fn release(&mut self, shared: &Shared) {
        self.messages.shrink_to_fit();
        shared.state().outbox.release();
    }

    /// Queues a reply, if there is one.
    pub(super) fn answer(&mut self, answer: Option<Bytes>) {
        answer.into_iter().for_each(|answer| self.push(Outgoing::Reply(answer)));
    }

    /// Queues the reply of a handler behind the messages that the handler has sent before.
    pub(super) fn answer_after(&mut self, shared: &Shared, answer: Option<Bytes>) {
        if shared.has_changes() {
            let mut state = shared.state();
            while let Some(message) = state.outbox.messages.pop_front() {
                self.push(message);
            }
        }
        self.answer(answer);
    }

    fn push(&mut self, message: Outgoing) {
        match &message {
            Outgoing::Reply(message) => self.reply_bytes += message.len(),
            Outgoing::Call(message) => self.call_bytes += message.len(),
        }
        self.messages.push_back(message);
    }

    /// Whether so many replies are queued that no more requests should be admitted.
    pub(super) fn is_full(&self, shared: &Shared) -> bool {
        self.reply_bytes >= shared.settings.limits.write_queue_bytes.max(1)
    }

    /// Whether more replies are queued than a peer can cause that reads its replies.
    pub(super) fn overflows(&self, shared: &Shared) -> bool {
        self.reply_bytes
            >= shared
                .settings
                .limits
                .write_queue_bytes
                .saturating_add(shared.settings.limits.response_bytes)
    }

    /// Whether every message is written and flushed.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && !self.unflushed
    }

    /// Whether senders may wait for capacity that has become free. `collect` wakes them.
    pub(super) fn owes_wakeups(&self, shared: &Shared) -> bool {
        let limit = shared.settings.limits.write_queue_bytes.max(1);
        self.reported >= limit && self.call_bytes < limit
    }

    /// Takes the messages from the outbox, returns the capacity of the messages that were sent, and
    /// stores the waker for the next ones, all under one lock. Returns `None` without taking the lock if
    /// nothing has changed: a sender that waits for capacity has set the flag.
    pub(super) fn collect(&mut self, shared: &Shared, waker: &Waker) -> Option<Collected> {
        let known = self.waker.as_ref().is_some_and(|known| known.will_wake(waker));
        if !shared.take_changes() && known && !self.owes_wakeups(shared) {
            return None;
        }
        if !known {
            self.waker = Some(waker.clone());
        }
        let mut state = shared.state();
        let stop = state.stop;
        let outbox = &mut state.outbox;
        let has_messages = !outbox.messages.is_empty();
        while let Some(message) = outbox.messages.pop_front() {
            self.push(message);
        }
        outbox.call_bytes = self.call_bytes;
        self.reported = self.call_bytes;
        outbox.connection = Some(waker.clone());
        let room = self.call_bytes < outbox.limit && !outbox.senders.is_empty();
        let senders = if room { std::mem::take(&mut outbox.senders) } else { Vec::new() };
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        Some(Collected { stop, has_messages })
    }

    /// Passes all messages to the sink and flushes once. Pending while the peer does not read.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut impl Transport,
        shared: &Shared,
    ) -> Poll<Result<(), TransportError>> {
        while !self.messages.is_empty() {
            ready!(Pin::new(&mut *transport).poll_ready(cx))?;
            let message = match self.messages.pop_front() {
                None => break,
                Some(Outgoing::Reply(message)) => {
                    self.reply_bytes -= message.len();
                    message
                }
                Some(Outgoing::Call(message)) => {
                    self.call_bytes -= message.len();
                    message
                }
            };
            self.sent += 1;
            self.unflushed = true;
            shared.settings.tap.message(Direction::Sent, &message, &shared.facts);
            Pin::new(&mut *transport).start_send(message)?;
        }
        if self.unflushed {
            ready!(Pin::new(transport).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}
