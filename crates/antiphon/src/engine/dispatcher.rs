//! From a payload to its one answer.
//!
//! Every request that goes in comes out with exactly one answer: panics, timeouts and answers that
//! are too large included. What cannot be answered at once becomes a [`Run`].

use std::sync::Arc;
use std::task::Context as Poller;

use antiphon_core::{Entries, ErrorObject, Id, Message, Outcome, Payload, Request};
use bytes::Bytes;

use super::drive::Drive;
use super::in_flight::InFlight;
use super::ordered_replies::OrderedReplies;
use super::reply_buffer::{ReplyBuffer, ReplyWriter};
use super::requests::panicked;
use super::run::{Run, RunState, refuse};
use super::settings::Settings;
use crate::call::Invocation;
use crate::catch_unwind::{CatchUnwind, FirstPoll};
use crate::context::{Context, Origin};
use crate::service::Handler;

/// Enters handlers. One per connection, or per service of an HTTP port.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) settings: Arc<Settings>,
}

/// The state of a payload after its first poll.
pub(crate) enum Started {
    /// It is over; this is the answer, if it has one.
    Done(Option<Bytes>),
    /// It goes on.
    Running(RunState, Box<Run>),
}

impl Started {
    /// The answer if it is there already, or the drive to wait for it.
    pub(crate) fn or_drive(self) -> Result<Option<Bytes>, Drive> {
        match self {
            Self::Done(answer) => Ok(answer),
            Self::Running(state, run) => Err(Drive::new(state, run)),
        }
    }
}

impl Dispatcher {
    /// Takes up a payload whose responses have been taken out, and goes as far as it can now. Without
    /// a gate, it gets one of its own.
    ///
    /// Most payloads are one request that is answered at once: that costs no `Run`, and the answer
    /// is cut off from `out`.
    pub(crate) fn start(
        &self,
        payload: Payload,
        gate: Option<&Arc<InFlight>>,
        origin: &Origin,
        out: &mut ReplyBuffer,
        poller: &mut Poller<'_>,
    ) -> Started {
        match payload {
            Payload::One(Ok(Message::Request(request)))
                if !gate.is_some_and(|gate| gate.is_full()) =>
            {
                let Request { id, method, params, trace } = request;
                let context = Context::reuse(out.context.take(), id, origin);
                let call = || Invocation::received(method, params, trace);
                let limit = self.settings.limits.response_bytes;
                let mut answer = Bytes::new();
                let done = |outcome: &Outcome| {
                    if outcome.is_err() {
                        context.refused();
                    }
                    answer = out.answer(id_of(&context), outcome, limit);
                };
                match self.call(call, &context, poller, done) {
                    FirstPoll::Done => {}
                    FirstPoll::Panicked => answer = out.answer(id_of(&context), &panicked(), limit),
                    FirstPoll::Waits(call) => {
                        let mut run = Run::new(self, Entries::default(), false, gate, origin);
                        run.wait_for_call(call, context);
                        // Its waker is set; the deadline is yet to be.
                        let progress = run.poll_rest(true, poller);
                        return Started::Running(progress, run);
                    }
                }
                out.context = out.lent.then_some(context);
                Started::Done(Some(answer))
            }
            Payload::One(entry) => {
                Run::new(self, Entries::from_iter([entry]), false, gate, origin).started(poller)
            }
            Payload::Batch(batch) => Run::new(self, batch, true, gate, origin).started(poller),
        }
    }

    /// A batch of which nothing has started.
    pub(crate) fn batch(&self, batch: Entries, gate: &Arc<InFlight>, origin: &Origin) -> Box<Run> {
        Run::new(self, batch, true, Some(gate), origin)
    }

    /// Enters the handler of a request; `done` sees the outcome if it is there at once.
    #[inline(always)]
    pub(super) fn call(
        &self,
        call: impl FnOnce() -> Invocation,
        context: &Context,
        poller: &mut Poller<'_>,
        done: impl FnOnce(&Outcome),
    ) -> FirstPoll<Outcome> {
        let enter = || match self.may_ask_for_progress() {
            // The call is made where it goes: moving it costs as much as making it.
            false => self.handler.call(call(), context.clone()),
            true => {
                let call = call();
                context.keep_params(call.params.as_ref());
                self.handler.call(call, context.clone())
            }
        };
        CatchUnwind::enter(enter, poller, done)
    }

    /// Whether the params of a call may hold a progress token.
    #[inline]
    fn may_ask_for_progress(&self) -> bool {
        let style = self.settings.dialect.as_ref().and_then(|dialect| dialect.progress.as_ref());
        style.is_some_and(|style| !style.is_by_id())
    }

    /// Answers every request of a payload with this error and runs nothing.
    pub(crate) fn refuse(&self, payload: Payload, error: &ErrorObject) -> Option<Bytes> {
        let (entries, is_batch) = match payload {
            Payload::One(entry) => (Entries::from_iter([entry]), false),
            Payload::Batch(batch) => (batch, true),
        };
        let answers =
            ReplyWriter::new(entries.len(), is_batch, self.settings.limits.response_bytes);
        let mut answers = OrderedReplies::new(answers);
        refuse(entries, error, &mut answers);
        answers.finish(error)
    }
}

/// The id of a request that was entered.
pub(super) fn id_of(context: &Context) -> &Id {
    context.id().unwrap_or(&Id::Null)
}
