//! The queue of payloads that may not start yet, in arrival order. Bounded by count and by bytes.

use std::collections::VecDeque;

use antiphon_core::{Id, Limits, Message, Payload};

use crate::engine::short_id;

/// A payload, and the size of its frame.
pub(super) struct QueuedPayload {
    pub(super) payload: Payload,
    pub(super) bytes: usize,
    /// For a batch: the ids that were cancelled while it was queued. Some may not be in the batch.
    pub(super) cancelled: Vec<Id>,
}

#[derive(Default)]
pub(super) struct Backlog {
    queue: VecDeque<QueuedPayload>,
    bytes: usize,
    /// The number of queued payloads that contain no notification. While it is 0, no search for them is
    /// needed: a long queue of notifications is not searched at each message.
    requests: usize,
    /// The number of queued batches. While it is 0, a cancellation searches only for requests.
    batches: usize,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the queue accepts one more payload.
    pub(super) fn has_room(&self, limits: &Limits) -> bool {
        self.queue.len() < limits.queued_messages.max(1) && self.bytes < limits.frame_bytes
    }

    /// Describes a queue that has no room for a notification: what waits, for what, and the remedy.
    pub(super) fn overflow(&self, limits: &Limits, waits_for: &str, remedy: &str) -> String {
        let (count, bytes) = (self.queue.len(), self.bytes);
        let limit = match bytes < limits.frame_bytes {
            true => format!("`Limits::queued_messages` ({})", limits.queued_messages),
            false => format!("`Limits::frame_bytes` ({})", limits.frame_bytes),
        };
        format!(
            "too many notifications: {count} messages ({bytes} bytes) wait {waits_for}; {remedy}, or raise \
             {limit}"
        )
    }

    /// Like [`has_room`](Self::has_room), but counts only bytes. Used while a slow subscriber blocks
    /// the queue: more of its items are about to arrive, and behind them a response that we need.
    pub(super) fn has_bytes(&self, limits: &Limits) -> bool {
        self.bytes < limits.frame_bytes
    }

    pub(super) fn push(&mut self, held: QueuedPayload) {
        self.bytes += held.bytes;
        self.requests += usize::from(is_requests_only(&held.payload));
        self.batches += usize::from(matches!(held.payload, Payload::Batch(_)));
        self.queue.push_back(held);
    }

    pub(super) fn pop(&mut self) -> Option<QueuedPayload> {
        let held = self.queue.pop_front()?;
        self.bytes -= held.bytes;
        self.requests -= usize::from(is_requests_only(&held.payload));
        self.batches -= usize::from(matches!(held.payload, Payload::Batch(_)));
        Some(held)
    }

    /// Removes and returns the requests with this id, and marks the id as cancelled in each batch.
    pub(super) fn cancel(&mut self, id: &Id) -> Vec<Payload> {
        let is_it = |held: &QueuedPayload| matches!(&held.payload, Payload::One(Ok(Message::Request(request))) if request.id == *id);
        let mut out = VecDeque::new();
        if self.requests > 0 && self.queue.iter().any(is_it) {
            let stay;
            (out, stay) = std::mem::take(&mut self.queue).into_iter().partition(is_it);
            self.queue = stay;
            self.bytes -= out.iter().map(|held| held.bytes).sum::<usize>();
            self.requests -= out.len();
        }
        let batches = if self.batches > 0 { self.queue.len() } else { 0 };
        for held in self.queue.iter_mut().take(batches) {
            if let Payload::Batch(batch) = &held.payload
                && held.cancelled.len() < batch.len()
                && let Some(id) = short_id(id)
            {
                held.cancelled.push(id);
            }
        }
        out.into_iter().map(|held| held.payload).collect()
    }

    /// Whether a payload that contains no notification is queued.
    pub(super) fn has_requests(&self) -> bool {
        self.requests > 0
    }
}

/// Whether the payload contains no notification, so that nothing in it must keep the order.
pub(super) fn is_requests_only(payload: &Payload) -> bool {
    match payload {
        Payload::One(entry) => !matches!(entry, Ok(Message::Notification(_))),
        Payload::Batch(batch) => !batch.holds_notifications(),
    }
}
