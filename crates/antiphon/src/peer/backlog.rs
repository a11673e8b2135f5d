//! The queue of payloads that may not start yet, in arrival order. Bounded by count and by bytes.

use std::collections::VecDeque;

use antiphon_core::{Id, Limits, Message, Payload};

use crate::engine::short_id;
use crate::error::CloseReason;

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
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the queue accepts one more payload.
    pub(super) fn has_room(&self, limits: &Limits) -> bool {
        self.queue.len() < limits.queued_messages.max(1) && self.bytes < limits.frame_bytes
    }

    /// The reason of a connection that ends because a notification finds no room.
    pub(super) fn overflow(&self, limits: &Limits) -> CloseReason {
        let (count, bytes) = (self.queue.len(), self.bytes);
        let limit = match bytes < limits.frame_bytes {
            true => format!("`Limits::queued_messages` ({})", limits.queued_messages),
            false => format!("`Limits::frame_bytes` ({})", limits.frame_bytes),
        };
        format!(
            "too many notifications: {count} messages ({bytes} bytes) wait behind a notification whose \
             handler has not finished (run its work with `Context::spawn`, or raise {limit})"
        )
        .into()
    }

    /// Like [`has_room`](Self::has_room), but counts only bytes. Used while a slow subscriber blocks
    /// the queue: more of its items are about to arrive, and behind them a response that we need.
    pub(super) fn has_bytes(&self, limits: &Limits) -> bool {
        self.bytes < limits.frame_bytes
    }

    pub(super) fn push(&mut self, held: QueuedPayload) {
        self.bytes += held.bytes;
        self.requests += usize::from(is_requests_only(&held.payload));
        self.queue.push_back(held);
    }

    pub(super) fn pop(&mut self) -> Option<QueuedPayload> {
        let held = self.queue.pop_front()?;
        self.bytes -= held.bytes;
        self.requests -= usize::from(is_requests_only(&held.payload));
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

    /// Removes and returns the first payload that contains no notification.
    pub(super) fn pop_requests(&mut self) -> Option<QueuedPayload> {
        if self.requests == 0 {
            return None;
        }
        let at = self.queue.iter().position(|held| is_requests_only(&held.payload))?;
        let held = self.queue.remove(at)?;
        self.bytes -= held.bytes;
        self.requests -= 1;
        Some(held)
    }
}

/// Whether the payload contains no notification, so that nothing in it must keep the order.
pub(super) fn is_requests_only(payload: &Payload) -> bool {
    match payload {
        Payload::One(entry) => !matches!(entry, Ok(Message::Notification(_))),
        Payload::Batch(batch) => !batch.holds_notifications(),
    }
}
