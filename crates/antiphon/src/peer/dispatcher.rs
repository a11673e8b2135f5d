//! From a payload to its one answer.
//!
//! Every request that goes in comes out with exactly one answer: panics, timeouts and answers that
//! are too large included. What cannot be answered at once becomes a [`Run`].

use std::sync::Arc;
use std::task::Context as Poller;

use antiphon_core::{Entries, ErrorObject, Id, Limits, Message, Outcome, Payload, Request};
use bytes::Bytes;

use super::answers::Answers;
pub(crate) use super::answers::Scratch;
use super::caught::{Caught, Entered};
use super::gate::Gate;
use super::places::Places;
pub(crate) use super::run::{Progress, Run};
use super::run::{panicked, refuse};
use crate::call::Invocation;
use crate::context::{Context, Origin};
use crate::handler::Handler;

/// What every run needs, made once a connection or HTTP service.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) limits: Arc<Limits>,
}

/// What became of a payload at once.
pub(crate) enum Started {
    /// It is over; this is the answer, if it has one.
    Done(Option<Bytes>),
    /// It goes on.
    Running(Progress, Box<Run>),
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
        gate: Option<&Arc<Gate>>,
        origin: &Origin,
        out: &mut Scratch,
        poller: &mut Poller<'_>,
    ) -> Started {
        match payload {
            Payload::One(Ok(Message::Request(request)))
                if !gate.is_some_and(|gate| gate.is_full()) =>
            {
                let Request { id, method, params, trace } = request;
                let context = Context::reuse(out.context.take(), id, origin);
                let call = || Invocation::received(method, params, trace);
                let limit = self.limits.response_bytes;
                let mut answer = Bytes::new();
                let done = |outcome: &Outcome| {
                    if outcome.is_err() {
                        context.refused();
                    }
                    answer = out.answer(id_of(&context), outcome, limit);
                };
                match self.call(call, &context, poller, done) {
                    Entered::Done => {}
                    Entered::Panicked => answer = out.answer(id_of(&context), &panicked(), limit),
                    Entered::Waits(call) => {
                        let mut run = Run::new(self, Entries::default(), false, gate, origin);
                        run.wait_for(call, context);
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
    pub(super) fn batch(&self, batch: Entries, gate: &Arc<Gate>, origin: &Origin) -> Box<Run> {
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
    ) -> Entered<Outcome> {
        let enter = || match context.is_told_by_params() {
            // The call is made where it goes: moving it costs as much as making it.
            false => self.handler.call(call(), context.clone()),
            true => {
                let call = call();
                context.heed(call.params.as_ref());
                self.handler.call(call, context.clone())
            }
        };
        Caught::enter(enter, poller, done)
    }

    /// Answers every request of a payload with this error and runs nothing.
    pub(crate) fn refuse(&self, payload: Payload, error: &ErrorObject) -> Option<Bytes> {
        let (entries, is_batch) = match payload {
            Payload::One(entry) => (Entries::from_iter([entry]), false),
            Payload::Batch(batch) => (batch, true),
        };
        let answers = Answers::new(entries.len(), is_batch, self.limits.response_bytes);
        let mut answers = Places::new(answers);
        refuse(entries, error, &mut answers);
        answers.finish(error)
    }
}

/// The id of a request that was entered.
pub(super) fn id_of(context: &Context) -> &Id {
    context.id().unwrap_or(&Id::Null)
}
