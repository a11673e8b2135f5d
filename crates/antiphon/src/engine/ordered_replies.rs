//! The responses of one payload, in the order of its requests.

use antiphon_core::{ErrorObject, Id, Outcome};
use bytes::Bytes;

use super::dispatcher::id_of;
use super::reply_buffer::ReplyWriter;
use crate::context::Context;

/// Encodes each response as soon as all responses before it are encoded.
pub(super) struct OrderedReplies {
    written: ReplyWriter,
    /// The responses that are not encoded, from the first missing one on.
    slots: Vec<ReplySlot>,
}

/// One response that is missing, or that waits for an earlier one.
struct ReplySlot {
    id: Id,
    /// The context of the call, until its outcome is known.
    context: Option<Context>,
    outcome: Option<Outcome>,
    /// The call was cancelled without a response.
    is_silent: bool,
}

impl OrderedReplies {
    pub(super) fn new(written: ReplyWriter) -> Self {
        Self { written, slots: Vec::new() }
    }

    /// Adds the next response.
    #[inline]
    pub(super) fn answer(&mut self, id: &Id, outcome: &Outcome) {
        if self.slots.is_empty() {
            self.written.push(id, outcome);
        } else {
            let (id, outcome) = (id.clone(), Some(outcome.clone()));
            self.slots.push(ReplySlot { id, context: None, outcome, is_silent: false });
        }
    }

    /// Adds the response of this call, which is the next one.
    #[inline]
    pub(super) fn answer_call(&mut self, context: &Context, outcome: &Outcome) {
        if outcome.is_err() {
            context.refused();
        }
        self.answer(id_of(context), outcome);
    }

    /// Reserves the slot of a response that is not known yet, and returns its index.
    pub(super) fn reserve(&mut self, context: Context) -> usize {
        let id = id_of(&context).clone();
        self.slots.push(ReplySlot { id, context: Some(context), outcome: None, is_silent: false });
        self.slots.len() - 1
    }

    pub(super) fn is_batch(&self) -> bool {
        self.written.is_batch()
    }

    /// Whether a result was too large and was replaced by an error.
    pub(super) fn was_cut(&self) -> bool {
        self.written.was_cut
    }

    /// Fills a slot with the outcome of its call. Returns the context of the call.
    pub(super) fn fill(&mut self, slot: usize, outcome: Outcome) -> Option<Context> {
        let slot = self.slots.get_mut(slot)?;
        let context = slot.context.take();
        if let (Some(context), Err(_)) = (&context, &outcome) {
            context.refused();
        }
        slot.outcome = Some(outcome);
        context
    }

    /// The indices of the slots with this id whose outcome is not known.
    pub(super) fn missing_at(&self, id: &Id) -> Vec<usize> {
        let missing = |slot: &ReplySlot| slot.context.is_some() && slot.id == *id;
        (0..self.slots.len()).filter(|&at| missing(&self.slots[at])).collect()
    }

    /// Fills the slot of a cancelled call with this error, or leaves out its response. Returns the
    /// context of the call.
    pub(super) fn cancel(&mut self, slot: usize, answer: Option<ErrorObject>) -> Option<Context> {
        let slot = self.slots.get_mut(slot)?;
        slot.is_silent = answer.is_none();
        slot.outcome = answer.map(Err);
        let context = slot.context.take();
        if let Some(context) = &context {
            context.refused();
        }
        context
    }

    /// The ids and contexts of the calls whose outcome is not known.
    pub(super) fn missing(&self) -> impl Iterator<Item = (&Id, &Context)> {
        self.slots.iter().filter_map(|slot| Some((&slot.id, slot.context.as_ref()?)))
    }

    /// Returns the whole reply. Calls without an outcome get this error.
    pub(super) fn finish(&mut self, missing: &ErrorObject) -> Option<Bytes> {
        for ReplySlot { id, context, outcome, is_silent } in std::mem::take(&mut self.slots) {
            if let Some(context) = context {
                context.refused();
            }
            if is_silent {
                continue;
            }
            self.written.push(&id, &outcome.unwrap_or_else(|| Err(missing.clone())));
        }
        self.written.finish()
    }
}
