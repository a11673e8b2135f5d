//! What comes in, and who gets it.
//!
//! Answers go to the calls that wait for them at once, whatever else is held up: a handler that
//! waits for one would otherwise wait for us (contract 4). The rest is dispatched in arrival order.

use antiphon_core::framing::{FrameError, Texts, texts};
use antiphon_core::{
    Code, Entry, ErrorObject, Id, Intent, Invalid, Message, Payload, Response, decode,
};
use bytes::Bytes;

use super::Shared;
use crate::call::CallError;
use crate::call::exchange::missing_reply;
use crate::tap::Direction;

/// What is left of a frame when the answers in it are delivered.
pub(super) enum Received {
    /// Nothing.
    Nothing,
    /// A call of the other side is cancelled.
    Cancel(Id),
    /// Something for the dispatcher.
    Payload(Payload),
    /// It is a line that holds several texts.
    Texts(Texts),
    /// An answer that cannot be read, and nobody knows whose it is: some call would wait for ever.
    Lost(String),
}

/// Decodes a frame, which may be a whole line, and delivers the answers in it.
pub(super) fn receive(frame: &Bytes, line: bool, shared: &Shared) -> Received {
    let payload = decode(frame, &shared.settings.rules);
    if let Some(cancelled) = cancelled(&payload, shared) {
        shared.settings.tap.message(Direction::Received, frame, &shared.facts);
        return cancelled.map_or(Received::Nothing, Received::Cancel);
    }
    if let Payload::One(Ok(Message::Notification(note))) = &payload
        && shared.hear_progress(note.method.as_bytes(), note.params.as_ref())
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
            let hint = framing_hint(frame);
            let error = || match hint {
                Some(hint) => CallError::Protocol(hint.to_owned()),
                None => CallError::unreadable(&invalid),
            };
            unreadable_answer(error, shared)
        }
        Payload::One(Err(invalid)) if invalid.is_over_limit() && !names_a_method(frame) => {
            shared.fail_only_exchange(|| CallError::unreadable(&invalid));
            Received::Payload(Payload::One(Err(invalid)))
        }
        Payload::One(entry) => deliver(entry, shared)
            .map_or(Received::Nothing, |rest| Received::Payload(Payload::One(rest))),
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

/// A frame that could not be taken at all.
///
/// It is answered like a message that could not be read. It may also have been an answer to us: if
/// just one message of ours waits for one, that ends with the reason.
pub(super) fn untaken(error: &FrameError, shared: &Shared) -> Received {
    let lost = || CallError::Transport(format!("the answer cannot be taken: {error}"));
    if shared.only_calls {
        return unreadable_answer(lost, shared);
    }
    let answer = match error {
        FrameError::TooLarge { limit } => {
            shared.fail_only_exchange(lost);
            ErrorObject::request_too_large(*limit)
        }
        other => ErrorObject::parse_error().with_data(&other.to_string()),
    };
    let invalid = Invalid { id: Id::Null, error: answer, intent: Intent::Request };
    Received::Payload(Payload::One(Err(invalid)))
}

/// The call that this cancels, if it is a cancellation. In a batch, it is an entry like others.
pub(super) fn cancelled(payload: &Payload, shared: &Shared) -> Option<Option<Id>> {
    let cancellation = shared.cancellation()?;
    match payload {
        Payload::One(Ok(Message::Notification(notification))) => cancellation.cancels(notification),
        _ => None,
    }
}

/// Whether there is nothing to deliver and nothing to complain of.
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

/// Whether a frame that cannot be read may have been a request; otherwise it may be an answer.
fn names_a_method(frame: &Bytes) -> bool {
    let name = b"\"method\"";
    frame.windows(name.len()).any(|window| window == name)
}

/// What a frame gives away of a peer that is spoken to in the wrong way.
fn framing_hint(frame: &Bytes) -> Option<&'static str> {
    let starts = |text: &str| {
        frame.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()))
    };
    if starts("content-length:") {
        Some("it speaks Content-Length; name the framing, as in exec+header: or tcp+header://")
    } else if starts("HTTP/1.") {
        Some("it is an HTTP server; use http://")
    } else {
        None
    }
}

/// To a side that only calls, whatever comes is an answer.
fn unreadable_answer(error: impl Fn() -> CallError, shared: &Shared) -> Received {
    if shared.fail_only_exchange(&error) || !shared.awaits_answers() {
        return Received::Nothing;
    }
    Received::Lost(error().to_string())
}

fn deliver(entry: Entry, shared: &Shared) -> Option<Entry> {
    match entry {
        Ok(Message::Response(response)) => shared.answer(response),
        Err(invalid) if invalid.intent == Intent::Response => shared.answer_invalid(&invalid),
        other => return Some(other),
    }
    None
}

/// The batch of ours that an Array of responses answers.
struct AnsweredBatch(Option<std::ops::Range<u64>>);

impl AnsweredBatch {
    fn open(entries: &[Entry], shared: &Shared) -> Self {
        let id = entries.iter().find_map(|entry| match entry {
            Ok(Message::Response(Response { id, .. })) => Some(id),
            _ => None,
        });
        Self(id.and_then(|id| shared.state().session.exchange(id)))
    }

    /// What the Array left out will never come: its callers learn so now.
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
