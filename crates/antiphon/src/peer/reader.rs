//! What comes in, and who gets it.
//!
//! Answers go to the calls that wait for them at once, whatever else is held up: a handler that
//! waits for one would otherwise wait for us (contract 4). The rest is dispatched in arrival order.

use antiphon_core::framing::FrameError;
use antiphon_core::{
    Entry, ErrorObject, Id, Intent, Invalid, Message, Payload, Response, Rules, decode,
};
use bytes::Bytes;

use super::{Direction, Shared};
use crate::call::CallError;

/// Decodes a frame and delivers the answers in it; what is left is for the dispatcher.
pub(super) fn receive(frame: &Bytes, rules: &Rules, shared: &Shared) -> Option<Payload> {
    if let Some(tap) = &shared.tap {
        tap(Direction::Received, frame);
    }
    match decode(frame, rules) {
        Payload::One(entry) => deliver(entry, shared).map(Payload::One),
        Payload::Batch(entries) => {
            let batch = AnsweredBatch::open(&entries, shared);
            let rest: Vec<Entry> =
                entries.into_iter().filter_map(|entry| deliver(entry, shared)).collect();
            batch.close(shared);
            (!rest.is_empty()).then_some(Payload::Batch(rest))
        }
    }
}

/// A frame that could not be taken is answered like a message that could not be read; unless just
/// one message of ours waits for its answer: then it was most likely that.
pub(super) fn unreadable(error: &FrameError, shared: &Shared) -> Option<Payload> {
    let answer = match error {
        FrameError::TooLarge { limit } => ErrorObject::request_too_large(*limit),
        other => ErrorObject::parse_error().with_data(&other.to_string()),
    };
    let waiters = shared.state().session.answer_only_exchange();
    if waiters.is_empty() {
        let invalid = Invalid { id: Id::Null, error: answer, intent: Intent::Request };
        return Some(Payload::One(Err(invalid)));
    }
    for waiter in waiters {
        let _ =
            waiter.send(Err(CallError::Transport(format!("the answer cannot be taken: {error}"))));
    }
    None
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
            let reason = "the answer to the batch lacks this call".to_owned();
            let _ = waiter.send(Err(CallError::Protocol(reason)));
        }
    }
}
