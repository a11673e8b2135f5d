//! What came in and may not start yet, in arrival order; bounded by count and by bytes.

use std::collections::VecDeque;

use antiphon_core::framing::Texts;
use antiphon_core::{Id, Limits, Message, Payload};
use bytes::Bytes;

use super::wire::TransportError;
use crate::engine::short_id;

/// A payload and the size of the frame it came in.
pub(super) struct Held {
    pub(super) payload: Payload,
    pub(super) bytes: usize,
    /// The calls of a batch that are cancelled; some of these ids may be of others.
    pub(super) cancelled: Vec<Id>,
}

#[derive(Default)]
pub(super) struct Backlog {
    queue: VecDeque<Held>,
    bytes: usize,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether one more may wait here.
    pub(super) fn has_room(&self, limits: &Limits) -> bool {
        self.queue.len() < limits.in_flight.max(1) && self.bytes < limits.frame_bytes
    }

    /// The same where only their bytes count: behind an item that is not taken there are more of its
    /// kind, and an answer behind those.
    pub(super) fn has_bytes(&self, limits: &Limits) -> bool {
        self.bytes < limits.frame_bytes
    }

    pub(super) fn push(&mut self, held: Held) {
        self.bytes += held.bytes;
        self.queue.push_back(held);
    }

    pub(super) fn pop(&mut self) -> Option<Held> {
        let held = self.queue.pop_front()?;
        self.bytes -= held.bytes;
        Some(held)
    }

    /// Takes out the requests of this id, and tells the batches.
    pub(super) fn cancel(&mut self, id: &Id) -> Vec<Payload> {
        let is_it = |held: &Held| matches!(&held.payload, Payload::One(Ok(Message::Request(request))) if request.id == *id);
        let (out, stay): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.queue).into_iter().partition(is_it);
        self.queue = stay;
        self.bytes -= out.iter().map(|held| held.bytes).sum::<usize>();
        for held in &mut self.queue {
            if let Payload::Batch(batch) = &held.payload
                && held.cancelled.len() < batch.len()
                && let Some(id) = short_id(id)
            {
                held.cancelled.push(id);
            }
        }
        out.into_iter().map(|held| held.payload).collect()
    }

    /// Takes out what consists of requests only.
    pub(super) fn take_requests(&mut self) -> VecDeque<Held> {
        let (pass, stay): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|held| is_requests_only(&held.payload));
        self.queue = stay;
        self.bytes = self.queue.iter().map(|held| held.bytes).sum();
        pass
    }
}

/// Whether nothing in it must keep the order.
pub(super) fn is_requests_only(payload: &Payload) -> bool {
    match payload {
        Payload::One(entry) => !matches!(entry, Ok(Message::Notification(_))),
        Payload::Batch(batch) => !batch.holds_notifications(),
    }
}

/// What a transport gives.
pub(super) type Incoming = Result<Bytes, TransportError>;

/// Frames that were read while nothing could be done with them.
#[derive(Default)]
pub(super) struct Ahead {
    /// What is left of a line that holds several texts, the next one first.
    texts: Option<(Bytes, Texts)>,
    frames: VecDeque<Incoming>,
    bytes: usize,
}

impl Ahead {
    const FRAMES: usize = 64;
    const BYTES: usize = 64 * 1024;

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.texts.is_none()
    }

    pub(super) fn has_room(&self) -> bool {
        self.frames.len() < Self::FRAMES && self.bytes < Self::BYTES
    }

    pub(super) fn push(&mut self, incoming: Incoming) {
        self.bytes += incoming.as_ref().map_or(0, Bytes::len);
        self.frames.push_back(incoming);
    }

    /// What was read at once and turned out to be several: they are found as they are taken.
    pub(super) fn split(&mut self, mut texts: Texts) {
        self.texts = texts.next().map(|first| (first, texts));
    }

    pub(super) fn pop(&mut self) -> Option<Incoming> {
        if let Some((text, texts)) = self.texts.take() {
            self.split(texts);
            return Some(Ok(text));
        }
        let incoming = self.frames.pop_front()?;
        self.bytes -= incoming.as_ref().map_or(0, Bytes::len);
        Some(incoming)
    }
}
