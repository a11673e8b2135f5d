//! From a payload to its one answer.
//!
//! A [`Run`] is one payload under way. Its entries are entered in order and polled in place; what is
//! not ready at once is kept and polled on. Notifications finish before the next entry starts
//! (contract 5). HTTP drives a `Run` inside the request's own future, a connection inside its own,
//! until nothing in it must keep the order; then it becomes a task.
//!
//! Every request that goes in comes out with exactly one answer: panics, timeouts and answers that
//! are too large included.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Poller, Poll};

use antiphon_core::{Entry, ErrorObject, Id, Intent, Limits, Message, Outcome, Payload, encode};
use bytes::{BufMut, Bytes, BytesMut};
use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use futures_util::task::AtomicWaker;
use tokio::time::{Sleep, sleep};

use super::{Peer, Shared};
use crate::BoxFuture;
use crate::call::Invocation;
use crate::context::{Connection, Context};
use crate::handler::Handler;

/// How many requests run at once; shared by everything on one connection.
pub(crate) struct Gate {
    running: AtomicUsize,
    limit: usize,
    /// Who waits for room.
    waiting: AtomicWaker,
}

impl Gate {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let waiting = AtomicWaker::new();
        Arc::new(Self { running: AtomicUsize::new(0), limit: limit.max(1), waiting })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.running.load(Ordering::Acquire) >= self.limit
    }

    /// The same, and wakes whoever asks when it is full no more.
    fn poll_full(&self, poller: &mut Poller<'_>) -> bool {
        if !self.is_full() {
            return false;
        }
        self.waiting.register(poller.waker());
        self.is_full()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
    }

    /// Only the connection's own task admits, so that a look and a step are one.
    fn pass(self: &Arc<Self>) -> Pass {
        self.running.fetch_add(1, Ordering::AcqRel);
        Pass(self.clone())
    }
}

/// The right of one request to run.
struct Pass(Arc<Gate>);

impl Drop for Pass {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == self.0.limit {
            self.0.waiting.wake();
        }
    }
}

/// Where a payload came from: what its contexts are made of.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) connection: Arc<Connection>,
    pub(crate) peer: Option<Arc<Shared>>,
}

impl Origin {
    fn context(&self, id: Option<Id>) -> Context {
        let peer = self.peer.clone().map(|shared| Peer { shared });
        Context::new(id, self.connection.clone(), peer)
    }

    /// Polls the handler of a notification: calls that it makes give up its place in the order.
    fn poll_in_order(&self, poller: &mut Poller<'_>, notification: &mut Caught<()>) -> Poll<()> {
        let _order = self.peer.as_ref().map(|shared| shared.keep_order());
        notification.poll(poller).map(drop)
    }
}

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
    batch: bool,
    unstarted: std::vec::IntoIter<Entry>,
    answers: Vec<Answer>,
    /// Made for the first call that waits.
    calls: Option<FuturesUnordered<Served>>,
    notification: Option<(Caught<()>, Context)>,
    deadline: Option<Pin<Box<Sleep>>>,
}

/// The place of one answer, in request order.
struct Answer {
    id: Id,
    context: Option<Context>,
    outcome: Option<Outcome>,
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

impl Dispatcher {
    /// Takes up a payload whose responses have been taken out, and goes as far as it can now.
    pub(crate) fn start(
        &self,
        payload: Payload,
        gate: &Arc<Gate>,
        origin: Origin,
        poller: &mut Poller<'_>,
    ) -> (Progress, Run) {
        let (entries, batch) = entries_of(payload);
        let mut run = Run {
            dispatcher: self.clone(),
            gate: gate.clone(),
            origin,
            batch,
            answers: Vec::with_capacity(entries.len()),
            unstarted: entries.into_iter(),
            calls: None,
            notification: None,
            deadline: None,
        };
        (run.poll(poller), run)
    }

    /// Answers every request of a payload with this error and runs nothing.
    pub(crate) fn refuse(&self, payload: Payload, error: &ErrorObject) -> Option<Bytes> {
        let (entries, batch) = entries_of(payload);
        let refuse = |entry: Entry| match entry {
            Ok(Message::Request(request)) => Some((request.id, Err(error.clone()))),
            Ok(Message::Notification(_) | Message::Response(_)) => None,
            Err(invalid) => Some((invalid.id, Err(invalid.error))),
        };
        encode_answers(entries.into_iter().filter_map(refuse), batch, self.limits.response_bytes)
    }
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
        if started && self.calls.as_ref().is_none_or(FuturesUnordered::is_empty) {
            return Progress::Done(self.encode());
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
        for answer in self.answers.iter_mut().filter(|answer| answer.outcome.is_none()) {
            answer.outcome = Some(Err(error.clone()));
        }
        self.encode()
    }

    /// Drops what runs, and tells whatever it has set going.
    fn cancel(&mut self) {
        for (_, context) in self.running() {
            context.cancel();
        }
        if let Some((_, context)) = self.notification.take() {
            context.cancel();
        }
        self.calls = None;
    }

    /// Whether it waits for a notification, rather than for room.
    pub(crate) fn keeps_order(&self) -> bool {
        self.notification.is_some()
    }

    /// The ids and contexts of what runs.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&Id, &Context)> {
        let unanswered = self.answers.iter().filter(|answer| answer.outcome.is_none());
        unanswered.filter_map(|answer| Some((&answer.id, answer.context.as_ref()?)))
    }

    /// Answers what has not started with this error.
    pub(crate) fn refuse_rest(&mut self, error: &ErrorObject) {
        for entry in std::mem::take(&mut self.unstarted) {
            match entry {
                Ok(Message::Request(request)) => self.answer(request.id, Err(error.clone())),
                Err(invalid) => self.answer(invalid.id, Err(invalid.error)),
                Ok(Message::Notification(_) | Message::Response(_)) => {}
            }
        }
    }

    /// Enters entries until one must wait; true when all were entered and all notifications done.
    fn poll_entries(&mut self, poller: &mut Poller<'_>) -> bool {
        loop {
            if let Some((notification, _)) = &mut self.notification {
                if self.origin.poll_in_order(poller, notification).is_pending() {
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
                let context = self.origin.context(Some(request.id.clone()));
                let call = Invocation { method: request.method, params: request.params, id: None };
                let mut call = Caught::new(|| self.dispatcher.handler.call(call, context.clone()));
                match call.poll(poller) {
                    Poll::Ready(outcome) => self.answer(request.id, flatten(outcome)),
                    Poll::Pending => {
                        let place = self.answers.len();
                        let (context, outcome) = (Some(context), None);
                        self.answers.push(Answer { id: request.id, context, outcome });
                        let served = Served { place, call, _pass: self.gate.pass() };
                        self.calls.get_or_insert_default().push(served);
                    }
                }
            }
            Ok(Message::Notification(notification)) => {
                let context = self.origin.context(None);
                let call = Invocation {
                    method: notification.method,
                    params: notification.params,
                    id: None,
                };
                let notify = || self.dispatcher.handler.notify(call, context.clone());
                let mut done = Caught::new(notify);
                if self.origin.poll_in_order(poller, &mut done).is_pending() {
                    self.notification = Some((done, context));
                }
            }
            Ok(Message::Response(_)) => {}
            Err(invalid) if invalid.intent == Intent::Response => {}
            Err(invalid) => {
                tracing::debug!(id = %invalid.id, error = %invalid.error, "no valid message");
                self.answer(invalid.id, Err(invalid.error));
            }
        }
    }

    /// True when a call has ended.
    fn poll_calls(&mut self, poller: &mut Poller<'_>) -> bool {
        let Some(calls) = &mut self.calls else { return false };
        let mut ended = false;
        while let Poll::Ready(Some((place, outcome))) = Pin::new(&mut *calls).poll_next(poller) {
            ended = true;
            if let Some(answer) = self.answers.get_mut(place) {
                answer.outcome = Some(outcome);
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

    fn answer(&mut self, id: Id, outcome: Outcome) {
        self.answers.push(Answer { id, context: None, outcome: Some(outcome) });
    }

    fn encode(&mut self) -> Option<Bytes> {
        let answers = std::mem::take(&mut self.answers).into_iter();
        let answers = answers.map(|answer| {
            // A call that is gone without an outcome cannot be; were it so, it is still answered.
            (answer.id, answer.outcome.unwrap_or_else(|| Err(ErrorObject::internal_error())))
        });
        encode_answers(answers, self.batch, self.dispatcher.limits.response_bytes)
    }
}

/// A run that is dropped in the middle takes along what it has set going.
impl Drop for Run {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// One answer, or an Array of them; nothing where there is none (section 6).
///
/// An answer that does not fit is replaced by an error that does: each request keeps its answer.
fn encode_answers(
    answers: impl Iterator<Item = (Id, Outcome)>,
    batch: bool,
    limit: usize,
) -> Option<Bytes> {
    let mut out = BytesMut::with_capacity(128);
    for (id, outcome) in answers {
        if batch {
            out.put_u8(if out.is_empty() { b'[' } else { b',' });
        }
        let start = out.len();
        encode::response(&id, &outcome, &mut out);
        if out.len() > limit {
            out.truncate(start);
            encode::response(&id, &Err(ErrorObject::response_too_large(limit)), &mut out);
        }
    }
    if batch && !out.is_empty() {
        out.put_u8(b']');
    }
    (!out.is_empty()).then(|| out.freeze())
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

/// A handler's future whose panics end here: the text goes to the log and never to the other side.
struct Caught<T>(Option<BoxFuture<'static, T>>);

struct Panicked;

impl<T> Caught<T> {
    fn new(make: impl FnOnce() -> BoxFuture<'static, T>) -> Self {
        Self(catch_unwind(AssertUnwindSafe(make)).map_err(|panic| report(&*panic)).ok())
    }

    fn poll(&mut self, poller: &mut Poller<'_>) -> Poll<Result<T, Panicked>> {
        let Some(future) = &mut self.0 else { return Poll::Ready(Err(Panicked)) };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(poller))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => {
                self.0 = None;
                report(&*panic);
                Poll::Ready(Err(Panicked))
            }
        }
    }
}

fn report(panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("of no text"), "a handler panicked");
}
