//! Decodes incoming frames, and delivers the responses in them to the pending calls.
//!
//! Responses are delivered at once, even while other messages are queued: otherwise a handler that
//! waits for a response would block the queue in which the response waits (contract 4). All other
//! messages are dispatched in arrival order.

use std::sync::atomic::Ordering;

use antiphon_core::framing::{FrameError, Texts, texts};
use antiphon_core::{
    Code, Entry, ErrorObject, Id, Intent, Invalid, Message, Payload, Response, decode,
};
use bytes::Bytes;

use super::Shared;
use crate::call::CallError;
use crate::call::exchange::missing_reply;
use crate::dialect::Dialect;
use crate::tap::Direction;

/// The rest of a frame, after the responses in it were delivered.
pub(super) enum Received {
    /// Nothing is left.
    Nothing,
    /// The peer cancels a call that it made.
    Cancel(Id),
    /// A notification that does not wait for the messages before it.
    /// Boxed, so that `Payload` is the only variant that a payload is moved into.
    Overtaking(Box<Payload>),
    /// A payload for the dispatcher.
    Payload(Payload),
    /// The frame is a line that holds several JSON texts.
    Texts(Texts),
    /// A message that cannot be read, on a side without a handler: it may be a response or an item.
    Unreadable(CallError),
}

/// Decodes a frame and delivers the responses in it. `line` tells that the frame is a whole line, which
/// may hold several JSON texts.
pub(super) fn receive(frame: &Bytes, line: bool, shared: &Shared) -> Received {
    let payload = decode(frame, &shared.settings.rules);
    if let Some(urgent) = urgent(&payload, shared) {
        shared.settings.tap.message(Direction::Received, frame, &shared.facts);
        return match urgent {
            Urgent::Cancellation(cancelled) => {
                cancelled.map_or(Received::Nothing, Received::Cancel)
            }
            Urgent::Notification => Received::Overtaking(Box::new(payload)),
        };
    }
    if let Payload::One(Ok(Message::Notification(note))) = &payload
        && shared.deliver_progress(note.method.as_bytes(), note.params.as_ref())
    {
        shared.settings.tap.message(Direction::Received, frame, &shared.facts);
        return Received::Nothing;
    }
    if holds_only_calls(&payload) && shared.settings.tap.is_none() {
        return Received::Payload(payload);
    }
    if let Payload::One(Err(invalid)) = &payload
        && line
        && invalid.error.code == Code::PARSE_ERROR
        && texts(frame).next().is_some_and(|first| first.len() < frame.trim_ascii_end().len())
    {
        return Received::Texts(texts(frame));
    }
    shared.settings.tap.message(Direction::Received, frame, &shared.facts);
    match payload {
        Payload::One(Err(invalid)) if shared.only_calls && is_unreadable(&invalid) => {
            Received::Unreadable(match framing_hint(frame) {
                Some(hint) => CallError::protocol(hint),
                None => CallError::unreadable_message(&invalid, frame, String::new()),
            })
        }
        Payload::One(Err(invalid)) if invalid.is_over_limit() && !names_a_method(frame) => {
            shared.fail_only_exchange(|| CallError::unreadable(&invalid));
            Received::Payload(Payload::One(Err(invalid)))
        }
        Payload::One(Err(invalid)) if may_be_empty_response(&invalid, frame) => {
            match shared.fail_call(&invalid) {
                true => Received::Nothing,
                false => Received::Payload(Payload::One(Err(invalid))),
            }
        }
        Payload::One(entry) => deliver(entry, shared)
            .map_or(Received::Nothing, |rest| Received::Payload(Payload::One(rest))),
        // Two peers that reply to an empty batch with `[]` would exchange empty batches forever.
        Payload::Batch(batch) if batch.len() == 0 => {
            let invalid = Invalid::empty_batch(shared.settings.rules.versions);
            Received::Payload(Payload::One(Err(invalid)))
        }
        Payload::Batch(mut batch) => {
            let answers = batch.take_answers();
            let answered = AnsweredBatch::open(&answers, shared);
            answers.into_iter().for_each(|answer| drop(deliver(answer, shared)));
            answered.close(shared);
            if batch.len() == 0 {
                return Received::Nothing;
            }
            Received::Payload(Payload::Batch(batch))
        }
    }
}

/// Handles a frame that the transport could not read, for example because it is too large.
///
/// It is answered like a message that cannot be decoded. It may also have been a response: if exactly
/// one message of this side is unanswered, its calls fail with the reason.
pub(super) fn frame_failed(error: &FrameError, shared: &Shared) -> Received {
    let lost = || match error {
        FrameError::TooLarge { .. } => CallError::OverLimit(error.clone().into()),
        _ => CallError::Transport(error.clone().into()),
    };
    if shared.only_calls {
        return Received::Unreadable(lost());
    }
    let answer = match error {
        FrameError::TooLarge { limit } => {
            shared.fail_only_exchange(lost);
            ErrorObject::request_too_large(*limit)
        }
        other => ErrorObject::parse_error().with_data(&other.to_string()),
    };
    let id = shared.settings.rules.versions.unreadable_id();
    let invalid = Invalid { id, error: answer, intent: Intent::Request };
    Received::Payload(Payload::One(Err(invalid)))
}

/// A message that does not wait for the messages before it.
pub(super) enum Urgent {
    /// A cancellation, with the id that it cancels if that can be read.
    Cancellation(Option<Id>),
    /// Another notification that the dialect names.
    Notification,
}

/// Returns `Some` if the payload does not wait for the messages before it. An entry of a batch always waits.
#[inline]
pub(super) fn urgent(payload: &Payload, shared: &Shared) -> Option<Urgent> {
    // Plain JSON-RPC has no such message, so it skips the check.
    urgent_in(shared.settings.dialect.as_ref()?, payload, shared)
}

#[inline(never)]
fn urgent_in(dialect: &Dialect, payload: &Payload, shared: &Shared) -> Option<Urgent> {
    let Payload::One(Ok(Message::Notification(notification))) = payload else { return None };
    let cancelled = dialect.cancellation.as_ref().and_then(|it| it.cancels(notification));
    let overtakes =
        || dialect.overtakes(&notification.method) && !shared.has_overtaken.load(Ordering::Relaxed);
    cancelled.map(Urgent::Cancellation).or_else(|| overtakes().then_some(Urgent::Notification))
}

/// Whether the payload holds only valid requests and notifications.
fn holds_only_calls(payload: &Payload) -> bool {
    let is_call =
        |entry: &Entry| matches!(entry, Ok(Message::Request(_) | Message::Notification(_)));
    match payload {
        Payload::One(entry) => is_call(entry),
        Payload::Batch(batch) => batch.holds_only_calls(),
    }
}

fn is_unreadable(invalid: &Invalid) -> bool {
    [Code::PARSE_ERROR, Code::BATCH_TOO_LARGE].contains(&invalid.error.code)
}

/// Whether an Object may have been a response that has lost its outcome: in JavaScript, a result that is `undefined` is
/// left out.
fn may_be_empty_response(invalid: &Invalid, frame: &Bytes) -> bool {
    let is_object = invalid.error.code == Code::INVALID_REQUEST && invalid.id != Id::Null;
    is_object && invalid.intent == Intent::Request && !names_a_method(frame)
}

/// Whether an unreadable frame may have been a request. If not, it may have been a response.
fn names_a_method(frame: &Bytes) -> bool {
    let name = b"\"method\"";
    frame.windows(name.len()).any(|window| window == name)
}

/// Recognises a peer that uses another framing or protocol, and returns advice.
fn framing_hint(frame: &Bytes) -> Option<&'static str> {
    let starts = |text: &str| {
        frame.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()))
    };
    if starts("content-length:") {
        Some("it uses Content-Length framing; name it, as in exec+header: or tcp+header://")
    } else if starts("HTTP/1.") {
        Some("it is an HTTP server; use http://")
    } else {
        None
    }
}

/// Delivers a response to its call. Returns any other entry.
fn deliver(entry: Entry, shared: &Shared) -> Option<Entry> {
    match entry {
        Ok(Message::Response(response)) => shared.answer(response),
        Err(invalid) if invalid.intent == Intent::Response => shared.answer_invalid(&invalid),
        other => return Some(other),
    }
    None
}

/// The ids of the batch that an Array of responses answers, if one is found.
struct AnsweredBatch(Option<std::ops::Range<u64>>);

impl AnsweredBatch {
    fn open(entries: &[Entry], shared: &Shared) -> Self {
        let id = entries.iter().find_map(|entry| match entry {
            Ok(Message::Response(Response { id, .. })) => Some(id),
            _ => None,
        });
        Self(id.and_then(|id| shared.state().session.exchange(id)))
    }

    /// Fails the calls of the batch that have no response in the Array, because none will follow.
    fn close(self, shared: &Shared) {
        let missing: Vec<_> = {
            let mut state = shared.state();
            self.0.into_iter().flatten().filter_map(|id| state.session.abandon(id)).collect()
        };
        for waiter in missing {
            waiter.send(Err(missing_reply()));
        }
    }
}
