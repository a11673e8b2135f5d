//! Dispatches a payload to the handler and encodes its reply.
//!
//! Every request gets exactly one response, also after a panic, a timeout, or a result that is too large.
//! A payload that cannot be answered at once becomes a [`Run`].

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
use crate::BoxFuture;
use crate::call::Invocation;
use crate::catch_unwind::{CatchUnwind, FirstPoll};
use crate::context::{Context, Origin};
use crate::dialect::Dialect;
use crate::log_excerpt::log_excerpt;
use crate::service::Handler;

/// Calls the handler. There is one dispatcher per connection, or per HTTP service.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) settings: Arc<Settings>,
}

/// The state of a payload after its first poll.
pub(crate) enum Started {
    /// The payload is finished, with its reply if it has one.
    Done(Option<Bytes>),
    /// The payload is not finished, or has opened a subscription that must follow the reply.
    Running(RunState, Box<Run>),
}

impl Started {
    /// Returns the reply if the payload is finished, or else the [`Drive`] that waits for it.
    pub(crate) fn or_drive(self) -> Result<Option<Bytes>, Drive> {
        match self {
            Self::Done(answer) => Ok(answer),
            Self::Running(state, run) => Err(Drive::new(state, run)),
        }
    }
}

impl Dispatcher {
    /// Starts a payload and polls it once. The caller has removed the responses from the payload.
    /// Without an `in_flight` limit to share, the payload gets one of its own.
    ///
    /// Most payloads are a single request whose handler finishes at the first poll. This costs no `Run`,
    /// and the reply is split off from `out`.
    pub(crate) fn start(
        &self,
        payload: Payload,
        in_flight: Option<&Arc<InFlight>>,
        origin: &Origin,
        out: &mut ReplyBuffer,
        poller: &mut Poller<'_>,
    ) -> Started {
        match payload {
            Payload::One(Ok(Message::Request(request)))
                if !in_flight.is_some_and(|in_flight| in_flight.is_full()) =>
            {
                let Request { id, method, params, trace } = request;
                let context = Context::reuse(out.context.take(), id, origin);
                let call = || Invocation::received(method, params, trace);
                let mut answer = Bytes::new();
                let mut done = |outcome: &Outcome| {
                    answer = out.answer(&context, outcome, &self.settings);
                };
                match self.call(call, &context, poller, &mut done) {
                    FirstPoll::Done => {}
                    FirstPoll::Panicked => done(&panicked()),
                    FirstPoll::Waits(call) => {
                        let mut run = Run::new(self, Entries::default(), false, in_flight, origin);
                        run.wait_for_call(call, context);
                        // The call was polled above and has its waker; the deadline has not.
                        let state = run.poll_rest(true, poller);
                        return Started::Running(state, run);
                    }
                }
                out.context = out.is_pooled.then_some(context);
                Started::Done(Some(answer))
            }
            Payload::One(entry) => {
                Run::new(self, Entries::from_iter([entry]), false, in_flight, origin)
                    .started(poller)
            }
            Payload::Batch(batch) => Run::new(self, batch, true, in_flight, origin).started(poller),
        }
    }

    /// Creates a run for a batch and starts nothing yet.
    pub(crate) fn batch(
        &self,
        batch: Entries,
        in_flight: &Arc<InFlight>,
        origin: &Origin,
    ) -> Box<Run> {
        Run::new(self, batch, true, Some(in_flight), origin)
    }

    /// Calls the handler with a request and polls its future once. `done` gets the outcome if the future
    /// is ready.
    #[inline(always)]
    pub(super) fn call(
        &self,
        call: impl FnOnce() -> Invocation,
        context: &Context,
        poller: &mut Poller<'_>,
        done: impl FnOnce(&Outcome),
    ) -> FirstPoll<Outcome> {
        let enter = || match &self.settings.dialect {
            // The invocation is built in the argument: moving it would cost as much as building it.
            None => self.handler.call(call(), context.clone()),
            Some(dialect) => self.call_in(dialect, call(), context),
        };
        CatchUnwind::enter(enter, poller, done)
    }

    /// Calls the handler with the rules of a dialect. A separate function, so plain JSON-RPC does not pay for it.
    #[inline(never)]
    fn call_in(
        &self,
        dialect: &Dialect,
        call: Invocation,
        context: &Context,
    ) -> BoxFuture<'static, Outcome> {
        if dialect.progress.as_ref().is_some_and(|style| !style.is_by_id()) {
            context.keep_params(call.params.as_ref());
        }
        let errors = dialect.errors;
        if !errors.changes_calls() {
            return self.handler.call(call, context.clone());
        }
        let method = call.method.clone();
        if context.peer().is_err()
            && let Some(error) = errors.without_connection(method.as_str())
        {
            return Box::pin(std::future::ready(Err(error)));
        }
        let outcome = self.handler.call(call, context.clone());
        let styled = move |error| errors.apply_to_call(&log_excerpt(method.as_str()), error);
        Box::pin(async move { outcome.await.map_err(styled) })
    }

    /// Answers every request of a payload with this error, and calls no handler.
    pub(crate) fn refuse(&self, payload: Payload, error: &ErrorObject) -> Option<Bytes> {
        let (entries, is_batch) = match payload {
            Payload::One(entry) => (Entries::from_iter([entry]), false),
            Payload::Batch(batch) => (batch, true),
        };
        let answers = ReplyWriter::new(entries.len(), is_batch, &self.settings);
        let mut answers = OrderedReplies::new(answers);
        refuse(entries, error, self.settings.errors(), &mut answers);
        answers.finish(error)
    }
}

/// The id of a request whose handler was called.
pub(super) fn id_of(context: &Context) -> &Id {
    context.id().unwrap_or(&Id::Null)
}
