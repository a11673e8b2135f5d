//! From a payload to its one answer.
//!
//! A [`Run`] is one payload under way. Its entries are entered in order and polled in place; what is
//! not ready at once is kept and polled on. Notifications finish before the next entry starts
//! (contract 5). HTTP drives a `Run` inside the request's own future, a connection inside its own,
//! until nothing in it must keep the order; then it becomes a task.
//!
//! Every request that goes in comes out with exactly one answer: panics, timeouts and answers that
//! are too large included.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{
    Entry, ErrorObject, Id, Intent, Limits, Message, Notification, Outcome, Payload, Request,
};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Sleep, sleep};

use super::answers::Answers;
pub(crate) use super::answers::Scratch;
use super::caught::{Caught, Panicked};
use super::gate::{Gate, Pass};
use crate::call::Invocation;
use crate::context::{Context, Origin};
use crate::handler::Handler;

/// What every run needs, made once a connection or HTTP service.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) limits: Arc<Limits>,
}

/// One payload under way.
pub(crate) struct Run {
    dispatcher: Dispatcher,
    gate: Arc<Gate>,
    origin: Origin,
    unstarted: std::vec::IntoIter<Entry>,
    answers: Answers,
    /// The place of each answer from the first on that has not come, in request order.
    places: Vec<Place>,
    calls: Calls,
    /// The context of a call that is over.
    spare: Option<Context>,
    notification: Option<(Caught<()>, Context)>,
    deadline: Option<Pin<Box<Sleep>>>,
}

/// The place of an answer that has to wait for its turn.
struct Place {
    id: Id,
    /// There until the outcome is.
    context: Option<Context>,
    outcome: Option<Outcome>,
}

/// The calls that wait.
enum Calls {
    None,
    One(Served),
    Many(FuturesUnordered<Served>),
}

impl Calls {
    fn push(&mut self, served: Served) {
        match std::mem::replace(self, Self::None) {
            Self::None => *self = Self::One(served),
            Self::One(first) => *self = Self::Many([first, served].into_iter().collect()),
            Self::Many(calls) => {
                calls.push(served);
                *self = Self::Many(calls);
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::One(_) => false,
            Self::Many(calls) => calls.is_empty(),
        }
    }

    /// The place and the outcome of a call that has ended, if one has.
    fn poll_ended(&mut self, poller: &mut Poller<'_>) -> Option<(usize, Outcome)> {
        let ended = match self {
            Self::None => return None,
            Self::One(served) => Pin::new(served).poll(poller).map(Some),
            Self::Many(calls) => return ready_or_none(Pin::new(calls).poll_next(poller)),
        };
        if ended.is_ready() {
            *self = Self::None;
        }
        ready_or_none(ended)
    }
}

fn ready_or_none<T>(poll: Poll<Option<T>>) -> Option<T> {
    match poll {
        Poll::Ready(ready) => ready,
        Poll::Pending => None,
    }
}

/// How far a run has come.
pub(crate) enum Progress {
    /// It is over; this is the answer, if it has one.
    Done(Option<Bytes>),
    /// All is started and nothing keeps the order: it can be a task of its own.
    Detached,
    /// An entry waits for room or for a notification: nothing behind it may start.
    Blocked,
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
                let (mut call, context) = self.call(request, origin, out.context.take());
                match call.poll(poller) {
                    Poll::Ready(outcome) => {
                        // The handler's own is gone with its future.
                        drop(call);
                        let limit = self.limits.response_bytes;
                        let answer = out.answer(id_of(&context), &flatten(outcome), limit);
                        out.context = out.lent.then_some(context);
                        Started::Done(Some(answer))
                    }
                    Poll::Pending => {
                        let mut run = self.run(Vec::new(), false, gate, origin);
                        run.wait_for(call, context);
                        // Its waker is set; the deadline is yet to be.
                        let progress = run.poll_rest(true, poller);
                        Started::Running(progress, run)
                    }
                }
            }
            payload => {
                let (entries, batch) = entries_of(payload);
                let mut run = self.run(entries, batch, gate, origin);
                match run.poll(poller) {
                    Progress::Done(answer) => Started::Done(answer),
                    progress => Started::Running(progress, run),
                }
            }
        }
    }

    fn run(
        &self,
        entries: Vec<Entry>,
        batch: bool,
        gate: Option<&Arc<Gate>>,
        origin: &Origin,
    ) -> Box<Run> {
        Box::new(Run {
            dispatcher: self.clone(),
            gate: gate.cloned().unwrap_or_else(|| Gate::new(self.limits.in_flight)),
            origin: origin.clone(),
            answers: Answers::new(entries.len(), batch, self.limits.response_bytes),
            places: Vec::new(),
            unstarted: entries.into_iter(),
            calls: Calls::None,
            spare: None,
            notification: None,
            deadline: None,
        })
    }

    /// Enters the handler of a request, with the context of one that is over.
    fn call(
        &self,
        request: Request,
        origin: &Origin,
        spare: Option<Context>,
    ) -> (Caught<Outcome>, Context) {
        let Request { id, method, params } = request;
        let context = Context::reuse(spare, id, origin);
        let call = Invocation { method, params, id: None };
        (Caught::new(|| self.handler.call(call, context.clone())), context)
    }

    /// Answers every request of a payload with this error and runs nothing.
    pub(crate) fn refuse(&self, payload: Payload, error: &ErrorObject) -> Option<Bytes> {
        let (entries, batch) = entries_of(payload);
        let mut answers = Answers::new(entries.len(), batch, self.limits.response_bytes);
        for entry in entries {
            match entry {
                Ok(Message::Request(request)) => answers.push(&request.id, &Err(error.clone())),
                Ok(Message::Notification(_) | Message::Response(_)) => {}
                Err(invalid) => answers.push(&invalid.id, &Err(invalid.error)),
            }
        }
        answers.finish()
    }
}

/// The id of a request that was entered.
fn id_of(context: &Context) -> &Id {
    context.id().unwrap_or(&Id::Null)
}

fn entries_of(payload: Payload) -> (Vec<Entry>, bool) {
    match payload {
        Payload::One(entry) => (vec![entry], false),
        Payload::Batch(entries) => (entries, true),
    }
}

impl Run {
    /// Goes as far as it can now.
    pub(crate) fn poll(&mut self, poller: &mut Poller<'_>) -> Progress {
        // A call that ends makes room for an entry that waits.
        let started = loop {
            let started = self.poll_entries(poller);
            if !self.poll_calls(poller) || started {
                break started;
            }
        };
        self.poll_rest(started, poller)
    }

    /// What is to be said once entries and calls have been polled.
    fn poll_rest(&mut self, started: bool, poller: &mut Poller<'_>) -> Progress {
        if started && self.calls.is_empty() {
            return Progress::Done(self.finish());
        }
        if self.poll_deadline(poller) {
            return Progress::Done(self.expire(&ErrorObject::timed_out()));
        }
        if started { Progress::Detached } else { Progress::Blocked }
    }

    /// Ends it now: what has not finished is cancelled, and answered with this error.
    pub(crate) fn expire(&mut self, error: &ErrorObject) -> Option<Bytes> {
        self.refuse_rest(error);
        self.cancel();
        for place in self.places.iter_mut().filter(|place| place.outcome.is_none()) {
            place.outcome = Some(Err(error.clone()));
        }
        self.finish()
    }

    /// Drops what runs, and tells whatever it has set going.
    fn cancel(&mut self) {
        for (_, context) in self.running() {
            context.cancel();
        }
        if let Some((_, context)) = self.notification.take() {
            context.cancel();
        }
        self.calls = Calls::None;
    }

    /// Whether it waits for a notification, rather than for room.
    pub(crate) fn keeps_order(&self) -> bool {
        self.notification.is_some()
    }

    /// The ids and contexts of what runs.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&Id, &Context)> {
        let unanswered = self.places.iter().filter(|place| place.outcome.is_none());
        unanswered.filter_map(|place| Some((&place.id, place.context.as_ref()?)))
    }

    /// Answers what has not started with this error.
    pub(crate) fn refuse_rest(&mut self, error: &ErrorObject) {
        for entry in std::mem::take(&mut self.unstarted) {
            match entry {
                Ok(Message::Request(request)) => self.answer(&request.id, Err(error.clone())),
                Err(invalid) => self.answer(&invalid.id, Err(invalid.error)),
                Ok(Message::Notification(_) | Message::Response(_)) => {}
            }
        }
    }

    /// Enters entries until one must wait; true when all were entered and all notifications done.
    fn poll_entries(&mut self, poller: &mut Poller<'_>) -> bool {
        loop {
            if let Some((notification, _)) = &mut self.notification {
                if poll_in_order(&self.origin, poller, notification).is_pending() {
                    return false;
                }
                self.notification = None;
            }
            let next_is_request =
                matches!(self.unstarted.as_slice().first(), Some(Ok(Message::Request(_))));
            if next_is_request && self.gate.poll_full(poller) {
                return false;
            }
            match self.unstarted.next() {
                None => return true,
                Some(entry) => self.enter(entry, poller),
            }
        }
    }

    fn enter(&mut self, entry: Entry, poller: &mut Poller<'_>) {
        match entry {
            Ok(Message::Request(request)) => {
                let spare = self.spare.take();
                let (mut call, context) = self.dispatcher.call(request, &self.origin, spare);
                match call.poll(poller) {
                    Poll::Ready(outcome) => {
                        drop(call);
                        self.answer(id_of(&context), flatten(outcome));
                        self.spare = Some(context);
                    }
                    Poll::Pending => self.wait_for(call, context),
                }
            }
            Ok(Message::Notification(Notification { method, params })) => {
                let context = Context::new(None, self.origin.clone());
                let call = Invocation { method, params, id: None };
                let notify = || self.dispatcher.handler.notify(call, context.clone());
                let mut done = Caught::new(notify);
                if poll_in_order(&self.origin, poller, &mut done).is_pending() {
                    self.notification = Some((done, context));
                }
            }
            Ok(Message::Response(_)) => {}
            Err(invalid) if invalid.intent == Intent::Response => {}
            Err(invalid) => {
                tracing::debug!(id = %invalid.id, error = %invalid.error, "no valid message");
                self.answer(&invalid.id, Err(invalid.error));
            }
        }
    }

    /// Keeps a call that waits, and the place of its answer.
    fn wait_for(&mut self, call: Caught<Outcome>, context: Context) {
        let place = self.places.len();
        let id = id_of(&context).clone();
        self.places.push(Place { id, context: Some(context), outcome: None });
        self.calls.push(Served { place, call, _pass: self.gate.pass() });
    }

    /// True when a call has ended.
    fn poll_calls(&mut self, poller: &mut Poller<'_>) -> bool {
        let mut ended = false;
        while let Some((place, outcome)) = self.calls.poll_ended(poller) {
            ended = true;
            if let Some(place) = self.places.get_mut(place) {
                place.outcome = Some(outcome);
            }
        }
        ended
    }

    /// True when time is up.
    fn poll_deadline(&mut self, poller: &mut Poller<'_>) -> bool {
        let Some(timeout) = self.dispatcher.limits.request_timeout else { return false };
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
        deadline.as_mut().poll(poller).is_ready()
    }

    /// An answer before which none is missing is written at once.
    fn answer(&mut self, id: &Id, outcome: Outcome) {
        if self.places.is_empty() {
            self.answers.push(id, &outcome);
        } else {
            self.places.push(Place { id: id.clone(), context: None, outcome: Some(outcome) });
        }
    }

    fn finish(&mut self) -> Option<Bytes> {
        for Place { id, outcome, .. } in std::mem::take(&mut self.places) {
            // A call that is gone without an outcome cannot be; were it so, it is still answered.
            let outcome = outcome.unwrap_or_else(|| Err(ErrorObject::internal_error()));
            self.answers.push(&id, &outcome);
        }
        self.answers.finish()
    }
}

/// A run that is dropped in the middle takes along what it has set going.
impl Drop for Run {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Polls the handler of a notification: calls that it makes give up its place in the order.
fn poll_in_order(
    origin: &Origin,
    poller: &mut Poller<'_>,
    notification: &mut Caught<()>,
) -> Poll<()> {
    let _order = origin.peer().map(|peer| peer.shared.keep_order());
    notification.poll(poller).map(drop)
}

/// A running call and its place among the answers.
struct Served {
    place: usize,
    call: Caught<Outcome>,
    _pass: Pass,
}

impl Future for Served {
    type Output = (usize, Outcome);

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let place = self.place;
        self.call.poll(poller).map(|outcome| (place, flatten(outcome)))
    }
}

fn flatten(outcome: Result<Outcome, Panicked>) -> Outcome {
    outcome.unwrap_or_else(|Panicked| Err(ErrorObject::internal_error()))
}
