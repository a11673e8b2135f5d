//! A bounded queue to the sink: everything that is ready goes out in one write.
//!
//! [`Outbox`] is the end that handles and tasks push into, under the lock of `Shared`. [`Writer`] is
//! the connection's own end, without a lock: answers that are ready at once go straight there.
//!
//! Two kinds of messages are bounded in two ways. Calls and notifications of our own wait for room.
//! Answers never wait, or a handler could hold what its own answer needs; the reader stops admitting
//! requests instead. Were they counted together, two peers that both have much to say would both
//! stop listening.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};

use super::Shared;
use super::wire::{Transport, TransportError};
use crate::call::Stop;
use crate::engine::ReplyBuffer;
use crate::tap::Direction;

/// One message on its way out.
pub(super) enum Outgoing {
    /// To a request of the other side.
    Answer(Bytes),
    /// A call or notification of ours.
    Own(Bytes),
}

/// Messages from anywhere, for the connection to collect.
pub(super) struct Outbox {
    messages: VecDeque<Outgoing>,
    /// Where our own messages are written, to be cut off.
    scratch: BytesMut,
    /// Bytes of our own messages, in here and in the writer.
    own: usize,
    limit: usize,
    /// The connection, when it sleeps.
    connection: Option<Waker>,
    senders: Vec<Waker>,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        Self {
            messages: VecDeque::new(),
            scratch: BytesMut::new(),
            own: 0,
            limit,
            connection: None,
            senders: Vec::new(),
        }
    }

    /// Writes a message of our own, of about this length, and queues it.
    pub(super) fn write(&mut self, len: usize, write: impl FnOnce(&mut BytesMut)) {
        if self.scratch.capacity() < len {
            self.scratch.reserve(len.max(SCRATCH));
        }
        write(&mut self.scratch);
        let message = self.scratch.split().freeze();
        self.push(Outgoing::Own(message));
    }

    /// Gives back the memory that an idle connection does not need.
    fn release(&mut self) {
        self.scratch = BytesMut::new();
        self.messages.shrink_to_fit();
    }

    /// Queues a message; the connection is to be rung for.
    pub(super) fn push(&mut self, message: Outgoing) {
        if let Outgoing::Own(message) = &message {
            self.own += message.len();
        }
        self.messages.push_back(message);
    }

    pub(super) fn has_room(&self) -> bool {
        self.own < self.limit
    }

    /// Ready when a sender may push.
    pub(super) fn poll_capacity(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_room() {
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

    pub(super) fn has_waiting_senders(&self) -> bool {
        !self.senders.is_empty()
    }

    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        self.connection.take()
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
    messages: VecDeque<Outgoing>,
    answers: usize,
    own: usize,
    /// What the outbox last heard of `own`.
    reported: usize,
    /// What the outbox wakes.
    waker: Option<Waker>,
    unflushed: bool,
    /// Where answers are written, to be cut off.
    pub(super) scratch: ReplyBuffer,
    /// Messages that the sink has taken.
    pub(super) sent: u64,
}

/// What was found in the outbox.
pub(super) struct News {
    /// How the connection is to stop, if it is.
    pub(super) stop: Option<Stop>,
    /// Messages were queued.
    pub(super) messages: bool,
}

/// Room for messages that is taken at a time.
const SCRATCH: usize = 4 * 1024;

impl Writer {
    pub(super) fn new() -> Self {
        Self { scratch: ReplyBuffer::lent(), ..Self::default() }
    }

    /// Gives back the memory that an idle connection does not need.
    pub(super) fn release(&mut self, shared: &Shared) {
        self.messages.shrink_to_fit();
        shared.state().outbox.release();
    }

    /// Queues an answer, where there is one.
    pub(super) fn answer(&mut self, answer: Option<Bytes>) {
        answer.into_iter().for_each(|answer| self.push(Outgoing::Answer(answer)));
    }

    /// Queues the answer of a handler behind what the handler has said before.
    pub(super) fn answer_after(&mut self, shared: &Shared, answer: Option<Bytes>) {
        if shared.has_news() {
            let mut state = shared.state();
            while let Some(message) = state.outbox.messages.pop_front() {
                self.push(message);
            }
        }
        self.answer(answer);
    }

    fn push(&mut self, message: Outgoing) {
        match &message {
            Outgoing::Answer(message) => self.answers += message.len(),
            Outgoing::Own(message) => self.own += message.len(),
        }
        self.messages.push_back(message);
    }

    /// Whether so many answers wait that no more requests should be admitted.
    pub(super) fn is_full(&self, shared: &Shared) -> bool {
        self.answers >= shared.settings.limits.write_queue_bytes.max(1)
    }

    /// Whether answers have piled up past what honest requests can cause.
    pub(super) fn overflows(&self, shared: &Shared) -> bool {
        self.answers
            >= shared
                .settings
                .limits
                .write_queue_bytes
                .saturating_add(shared.settings.limits.response_bytes)
    }

    /// Whether everything has gone out.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && !self.unflushed
    }

    /// Whether senders wait for room that there is by now: they learn of it when it is collected.
    pub(super) fn owes_room(&self, shared: &Shared) -> bool {
        let limit = shared.settings.limits.write_queue_bytes.max(1);
        self.reported >= limit && self.own < limit
    }

    /// Takes over what others have queued, gives back the room of what has gone out, and leaves the
    /// waker for what comes next: all under one lock. Without news there is nothing to do; who waits
    /// for room has rung.
    ///
    /// Some when there were news.
    pub(super) fn collect(&mut self, shared: &Shared, waker: &Waker) -> Option<News> {
        let known = self.waker.as_ref().is_some_and(|known| known.will_wake(waker));
        if !shared.take_news() && known && !self.owes_room(shared) {
            return None;
        }
        if !known {
            self.waker = Some(waker.clone());
        }
        let mut state = shared.state();
        let stop = state.stop;
        let outbox = &mut state.outbox;
        let messages = !outbox.messages.is_empty();
        while let Some(message) = outbox.messages.pop_front() {
            self.push(message);
        }
        outbox.own = self.own;
        self.reported = self.own;
        outbox.connection = Some(waker.clone());
        let room = self.own < outbox.limit && !outbox.senders.is_empty();
        let senders = if room { std::mem::take(&mut outbox.senders) } else { Vec::new() };
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        Some(News { stop, messages })
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
            let message = match self.messages.pop_front() {
                None => break,
                Some(Outgoing::Answer(message)) => {
                    self.answers -= message.len();
                    message
                }
                Some(Outgoing::Own(message)) => {
                    self.own -= message.len();
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
