//! A bounded queue to the sink: everything that is ready goes out in one write.
//!
//! [`Outbox`] is the end that handles and tasks push into, under the lock of `Shared`. [`Writer`] is
//! the connection's own end, without a lock: replies that are ready at once go straight there.
//! Senders wait while the outbox is over its limit; replies never wait, since the reader stops
//! admitting requests instead.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;

use super::{Direction, Shared};
use crate::transport::{Transport, TransportError};

/// Messages from anywhere, for the connection to collect.
pub(super) struct Outbox {
    messages: VecDeque<Bytes>,
    /// Bytes in here and in the writer.
    bytes: usize,
    limit: usize,
    /// The connection, when it sleeps.
    connection: Option<Waker>,
    senders: Vec<Waker>,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        Self { messages: VecDeque::new(), bytes: 0, limit, connection: None, senders: Vec::new() }
    }

    /// Queues a message and returns whom to wake once the lock is free.
    #[must_use]
    pub(super) fn push(&mut self, message: Bytes) -> Option<Waker> {
        self.bytes += message.len();
        self.messages.push_back(message);
        self.connection.take()
    }

    /// Ready when a sender may push.
    pub(super) fn poll_capacity(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.bytes < self.limit {
            return Poll::Ready(());
        }
        if !self.senders.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.senders.push(cx.waker().clone());
        }
        Poll::Pending
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        self.connection.take()
    }

    pub(super) fn set_waker(&mut self, waker: &Waker) {
        match &mut self.connection {
            Some(current) => current.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Drops what is queued and returns the senders that wait.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.messages.clear();
        std::mem::take(&mut self.senders)
    }
}

/// The connection's end of the queue.
#[derive(Default)]
pub(super) struct Writer {
    messages: VecDeque<Bytes>,
    bytes: usize,
    unflushed: bool,
    /// How many bytes the outbox last heard are waiting here.
    reported: usize,
}

impl Writer {
    /// Queues a reply of the connection's own.
    fn push(&mut self, message: Bytes) {
        self.bytes += message.len();
        self.messages.push_back(message);
    }

    /// Queues a reply, where there is one.
    pub(super) fn extend(&mut self, message: Option<Bytes>) {
        message.into_iter().for_each(|message| self.push(message));
    }

    /// Whether so much waits that no more requests should be admitted.
    pub(super) fn is_full(&self, shared: &Shared) -> bool {
        self.bytes >= shared.limits.write_queue_bytes
    }

    /// Whether everything has gone out.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && !self.unflushed
    }

    /// Whether senders wait for room that there is by now: they learn of it when it is collected.
    pub(super) fn owes_room(&self, shared: &Shared) -> bool {
        self.reported >= shared.limits.write_queue_bytes && !self.is_full(shared)
    }

    /// Takes over what others have queued, gives back the room of what has gone out, and leaves the
    /// waker for what comes next: all under one lock.
    pub(super) fn collect(&mut self, shared: &Shared, waker: &Waker) {
        let mut state = shared.state();
        let outbox = &mut state.outbox;
        for message in outbox.messages.drain(..) {
            self.bytes += message.len();
            self.messages.push_back(message);
        }
        outbox.bytes = self.bytes;
        self.reported = self.bytes;
        outbox.set_waker(waker);
        let senders = if self.bytes < outbox.limit && !outbox.senders.is_empty() {
            std::mem::take(&mut outbox.senders)
        } else {
            Vec::new()
        };
        drop(state);
        senders.into_iter().for_each(Waker::wake);
    }

    /// Hands everything to the sink and flushes once. Pending: the other side does not read.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut impl Transport,
        shared: &Shared,
    ) -> Poll<Result<(), TransportError>> {
        while !self.messages.is_empty() {
            ready!(Pin::new(&mut *transport).poll_ready(cx))?;
            let Some(message) = self.messages.pop_front() else { break };
            self.bytes -= message.len();
            self.unflushed = true;
            if let Some(tap) = &shared.tap {
                tap(Direction::Sent, &message);
            }
            Pin::new(&mut *transport).start_send(message)?;
        }
        if self.unflushed {
            ready!(Pin::new(transport).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}
