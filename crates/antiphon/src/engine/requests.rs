//! The requests of one payload: calls their handlers, and collects the responses in request order.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::Context as Poller;

use antiphon_core::{ErrorObject, Id, Outcome};

use super::dispatcher::Dispatcher;
use super::in_flight::InFlight;
use super::ordered_replies::OrderedReplies;
use super::pending_calls::{PendingCall, PendingCalls};
use super::reply_buffer::ReplyWriter;
use crate::call::Invocation;
use crate::catch_unwind::{CatchUnwind, FirstPoll};
use crate::context::{Context, Origin};
use crate::dialect::{Cancellation, ErrorStyle};

/// The requests of one payload whose handlers were called.
pub(super) struct Requests {
    pub(super) dispatcher: Dispatcher,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) origin: Origin,
    pub(super) answers: OrderedReplies,
    pub(super) calls: PendingCalls,
    /// The context of a finished call, to be reused for the next one.
    spare: Option<Context>,
    /// The ids of requests that were cancelled before their handlers were called.
    pub(super) cancelled: Option<HashSet<Id>>,
    /// The calls that have opened something that must follow the reply, such as a subscription, or that
    /// still may.
    pub(super) opened: Vec<Context>,
}

/// The outcome of a request whose handler panicked.
pub(super) fn panicked() -> Outcome {
    Err(ErrorObject::internal_error())
}

impl Requests {
    pub(super) fn new(
        dispatcher: &Dispatcher,
        entries: usize,
        is_batch: bool,
        in_flight: Option<&Arc<InFlight>>,
        origin: &Origin,
    ) -> Self {
        let settings = &*dispatcher.settings;
        let answers = ReplyWriter::new(entries, is_batch, settings);
        Self {
            in_flight: in_flight
                .cloned()
                .unwrap_or_else(|| InFlight::new(settings.limits.in_flight)),
            dispatcher: dispatcher.clone(),
            origin: origin.clone(),
            answers: OrderedReplies::new(answers),
            calls: PendingCalls::None,
            spare: None,
            cancelled: None,
            opened: Vec::new(),
        }
    }

    /// Calls the handler of a request, unless the request was already cancelled.
    #[inline]
    pub(super) fn enter(
        &mut self,
        id: Id,
        call: impl FnOnce() -> Invocation,
        poller: &mut Poller<'_>,
    ) {
        if self.cancelled.as_ref().is_some_and(|all| all.contains(&id)) {
            if let Some(error) = self.cancelled_answer() {
                self.answers.answer(&id, &Err(error));
            }
            return;
        }
        let context = Context::reuse(self.spare.take(), id, &self.origin);
        let answers = &mut self.answers;
        let done = |outcome: &Outcome| answers.answer_call(&context, outcome);
        match self.dispatcher.call(call, &context, poller, done) {
            FirstPoll::Done if context.may_be_followed() => self.opened.push(context),
            FirstPoll::Done => self.spare = Some(context),
            FirstPoll::Panicked => self.answers.answer_call(&context, &panicked()),
            FirstPoll::Waits(call) => self.wait_for(call, context),
        }
    }

    /// Keeps a call that has not finished, and reserves its reply slot.
    pub(super) fn wait_for(&mut self, call: CatchUnwind<Outcome>, context: Context) {
        let slot = self.answers.reserve(context);
        self.calls.push(PendingCall { slot, call, _permit: self.in_flight.acquire() });
    }

    /// Polls the unfinished calls. Returns true if at least one has finished.
    pub(super) fn poll_calls(&mut self, poller: &mut Poller<'_>) -> bool {
        let mut ended = false;
        while let Some((slot, outcome)) = self.calls.poll_ended(poller) {
            ended = true;
            let context = self.answers.fill(slot, outcome);
            self.opened.extend(context.filter(Context::may_be_followed));
        }
        ended
    }

    /// Returns a library error in the style of the dialect.
    #[cold]
    pub(super) fn styled(&self, error: ErrorObject) -> ErrorObject {
        self.error_style().apply(error)
    }

    pub(super) fn error_style(&self) -> ErrorStyle {
        self.dispatcher.settings.errors()
    }

    /// The cancellation of the dialect, if it has one.
    pub(super) fn cancellation(&self) -> Option<&Cancellation> {
        self.dispatcher.settings.cancellation()
    }

    /// The error response of a cancelled call; `None` if a cancelled call gets no response.
    pub(super) fn cancelled_answer(&self) -> Option<ErrorObject> {
        self.cancellation()?.answer()
    }
}
