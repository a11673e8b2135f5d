//! What came in and may not start yet, in arrival order; bounded by count and by bytes.

use std::collections::VecDeque;

use antiphon_core::framing::Texts;
use antiphon_core::{Limits, Message, Payload};
use bytes::Bytes;

use crate::transport::TransportError;

/// A payload and the size of the frame it came in.
pub(super) struct Held {
    pub(super) payload: Payload,
    pub(super) bytes: usize,
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

    pub(super) fn push(&mut self, held: Held) {
        self.bytes += held.bytes;
        self.queue.push_back(held);
    }

    pub(super) fn pop(&mut self) -> Option<Payload> {
        let held = self.queue.pop_front()?;
        self.bytes -= held.bytes;
        Some(held.payload)
    }

    /// Takes out what consists of requests only.
    pub(super) fn take_requests(&mut self) -> Vec<Payload> {
        let (pass, stay): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|held| is_requests_only(&held.payload));
        self.queue = stay;
        self.bytes = self.queue.iter().map(|held| held.bytes).sum();
        pass.into_iter().map(|held| held.payload).collect()
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
