//! The answers of one payload, in the order of its requests.

use antiphon_core::{ErrorObject, Id, Outcome};
use bytes::Bytes;

use super::reply_buffer::ReplyWriter;
use crate::context::Context;

/// Answers that are written as soon as none before them is missing.
pub(super) struct OrderedReplies {
    written: ReplyWriter,
    /// From the first one on that has not come.
    rest: Vec<ReplySlot>,
}

/// The place of an answer that has to wait for its turn.
struct ReplySlot {
    id: Id,
    /// There until the outcome is.
    context: Option<Context>,
    outcome: Option<Outcome>,
    /// It has no answer: it was cancelled, and that is the answer.
    is_silent: bool,
}

impl OrderedReplies {
    pub(super) fn new(written: ReplyWriter) -> Self {
        Self { written, rest: Vec::new() }
    }

    /// The next answer.
    #[inline]
    pub(super) fn answer(&mut self, id: &Id, outcome: &Outcome) {
        if self.rest.is_empty() {
            self.written.push(id, outcome);
        } else {
            let (id, outcome) = (id.clone(), Some(outcome.clone()));
            self.rest.push(ReplySlot { id, context: None, outcome, is_silent: false });
        }
    }

    /// The next answer, to this call.
    #[inline]
    pub(super) fn answer_call(&mut self, context: &Context, outcome: &Outcome) {
        if outcome.is_err() {
            context.refused();
        }
        self.answer(context.id().unwrap_or(&Id::Null), outcome);
    }

    /// Keeps the place of an answer that is still to come.
    pub(super) fn keep(&mut self, context: Context) -> usize {
        let id = context.id().unwrap_or(&Id::Null).clone();
        self.rest.push(ReplySlot { id, context: Some(context), outcome: None, is_silent: false });
        self.rest.len() - 1
    }

    pub(super) fn is_batch(&self) -> bool {
        self.written.is_batch()
    }

    /// Whether a result did not fit and an error went in its place.
    pub(super) fn was_cut(&self) -> bool {
        self.written.was_cut
    }

    /// It has come; gives back the context of its call.
    pub(super) fn settle(&mut self, place: usize, outcome: Outcome) -> Option<Context> {
        let place = self.rest.get_mut(place)?;
        let context = place.context.take();
        if let (Some(context), Err(_)) = (&context, &outcome) {
            context.refused();
        }
        place.outcome = Some(outcome);
        context
    }

    /// The places of this id whose answers have not come.
    pub(super) fn missing_at(&self, id: &Id) -> Vec<usize> {
        let missing = |place: &ReplySlot| place.context.is_some() && place.id == *id;
        (0..self.rest.len()).filter(|&at| missing(&self.rest[at])).collect()
    }

    /// It will not come: it is answered with this error, or not at all.
    pub(super) fn cancel(&mut self, place: usize, answer: Option<ErrorObject>) -> Option<Context> {
        let place = self.rest.get_mut(place)?;
        place.is_silent = answer.is_none();
        place.outcome = answer.map(Err);
        place.context.take()
    }

    /// The ids and contexts of those that have not.
    pub(super) fn missing(&self) -> impl Iterator<Item = (&Id, &Context)> {
        self.rest.iter().filter_map(|place| Some((&place.id, place.context.as_ref()?)))
    }

    /// All of them; what is missing ends with this error.
    pub(super) fn finish(&mut self, missing: &ErrorObject) -> Option<Bytes> {
        for ReplySlot { id, outcome, is_silent, .. } in std::mem::take(&mut self.rest) {
            if is_silent {
                continue;
            }
            self.written.push(&id, &outcome.unwrap_or_else(|| Err(missing.clone())));
        }
        self.written.finish()
    }
}
