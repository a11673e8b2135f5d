//! One payload under way.
//!
//! Its entries are entered in order and polled in place; what is not ready at once is kept and polled
//! on. Notifications finish before the next entry starts (contract 5). HTTP drives a `Run` inside the
//! request's own future, a connection inside its own, until nothing in it must keep the order; then it
//! becomes a task.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context as Poller;

use antiphon_core::{
    Entries, Entry, ErrorObject, Id, Intent, Message, Notification, Outcome, RawJson, Request, Turn,
};
use bytes::Bytes;
use tokio::time::{Sleep, sleep};

use super::answers::Answers;
use super::caught::{Caught, Entered};
use super::dispatcher::{Dispatcher, Started, id_of};
use super::gate::Gate;
use super::places::Places;
use super::served::{Calls, Served};
use super::subscriptions::Delivery;
use crate::call::Invocation;
use crate::context::{Context, Origin};
use crate::subscription::Feed;

/// One payload under way.
pub(crate) struct Run {
    dispatcher: Dispatcher,
    gate: Arc<Gate>,
    origin: Origin,
    unstarted: Entries,
    answers: Places,
    calls: Calls,
    /// The context of a call that is over.
    spare: Option<Context>,
    notification: Option<(Caught<()>, Context)>,
    /// Where the notification goes that waits, if that is to a subscription's follower.
    follower: Option<Arc<Feed>>,
    /// Calls that are cancelled before they have started.
    cancelled: Option<HashSet<Id>>,
    /// Calls that have opened something which waits for the reply.
    opened: Vec<Context>,
    deadline: Option<Pin<Box<Sleep>>>,
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

/// What answers a request whose handler panicked.
pub(super) fn panicked() -> Outcome {
    Err(ErrorObject::internal_error())
}

/// Answers entries with this error.
pub(super) fn refuse(entries: Entries, error: &ErrorObject, answers: &mut Places) {
    for entry in entries {
        match entry {
            Ok(Message::Request(request)) => answers.answer(&request.id, &Err(error.clone())),
            Err(invalid) if invalid.intent == Intent::Response => {}
            Err(invalid) => answers.answer(&invalid.id, &Err(invalid.error)),
            Ok(Message::Notification(_) | Message::Response(_)) => {}
        }
    }
}

impl Run {
    pub(super) fn new(
        dispatcher: &Dispatcher,
        entries: Entries,
        is_batch: bool,
        gate: Option<&Arc<Gate>>,
        origin: &Origin,
    ) -> Box<Self> {
        let limits = &dispatcher.limits;
        let answers = Answers::new(entries.len(), is_batch, limits.response_bytes);
        Box::new(Self {
            gate: gate.cloned().unwrap_or_else(|| Gate::new(limits.in_flight)),
            dispatcher: dispatcher.clone(),
            origin: origin.clone(),
            unstarted: entries,
            answers: Places::new(answers),
            calls: Calls::None,
            spare: None,
            notification: None,
            follower: None,
            cancelled: None,
            opened: Vec::new(),
            deadline: None,
        })
    }

    pub(super) fn started(mut self: Box<Self>, poller: &mut Poller<'_>) -> Started {
        match self.poll(poller) {
            Progress::Done(answer) if self.opened.is_empty() => Started::Done(answer),
            // What it has opened waits until the answer is on its way.
            progress => Started::Running(progress, self),
        }
    }

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
    pub(super) fn poll_rest(&mut self, started: bool, poller: &mut Poller<'_>) -> Progress {
        if started && self.calls.is_empty() {
            let answer = self.answers.finish(&ErrorObject::internal_error());
            if self.answers.was_cut() {
                self.opened.iter().for_each(Context::cut);
            }
            return Progress::Done(answer);
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
        self.answers.finish(error)
    }

    /// Cancels the calls of this id. One that has not started will not; one that is over stays as it
    /// is.
    pub(crate) fn cancel_call(&mut self, id: &Id) {
        let answer = self.cancelled_answer();
        let places = self.answers.missing_at(id);
        for &place in &places {
            if let Some(context) = self.answers.cancel(place, answer.clone()) {
                context.cancel();
            }
        }
        self.calls.remove(&places);
        if !self.answers.is_batch() {
            return self.cancel_unstarted(id, answer);
        }
        // No more of them than can be meant.
        let most = self.unstarted.len();
        if most > 0
            && let Some(id) = short(id)
        {
            let cancelled = self.cancelled.get_or_insert_default();
            if cancelled.len() < most {
                cancelled.insert(id);
            }
        }
    }

    /// The same for a single request that waits for room: it need not wait to be told.
    fn cancel_unstarted(&mut self, id: &Id, answer: Option<ErrorObject>) {
        let is_it =
            |entry: &Entry| matches!(entry, Ok(Message::Request(request)) if request.id == *id);
        let (it, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.unstarted).partition(is_it);
        self.unstarted = Entries::from_iter(others);
        if let (false, Some(error)) = (it.is_empty(), answer) {
            self.answers.answer(id, &Err(error));
        }
    }

    /// What a cancelled call is answered with, if with anything.
    fn cancelled_answer(&self) -> Option<ErrorObject> {
        self.origin.peer()?.shared.cancellation()?.answer()
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
        self.answers.missing()
    }

    /// Answers what has not started with this error.
    pub(crate) fn refuse_rest(&mut self, error: &ErrorObject) {
        refuse(std::mem::take(&mut self.unstarted), error, &mut self.answers);
    }

    /// Enters entries until one must wait; true when all were entered and all notifications done.
    fn poll_entries(&mut self, poller: &mut Poller<'_>) -> bool {
        loop {
            if let Some((notification, _)) = &mut self.notification {
                if in_order(&self.origin, || notification.poll(poller)).is_pending() {
                    return false;
                }
                self.notification = None;
            }
            if self.unstarted.next_is_request() && self.gate.poll_full(poller) {
                return false;
            }
            match self.unstarted.turn() {
                None => return true,
                Some(Turn::Request(request))
                    if self.cancelled.as_ref().is_some_and(|all| all.contains(&request.id())) =>
                {
                    let id = request.id();
                    if let Some(error) = self.cancelled_answer() {
                        self.answers.answer(&id, &Err(error));
                    }
                }
                Some(Turn::Request(request)) => {
                    let context = Context::reuse(self.spare.take(), request.id(), &self.origin);
                    let answers = &mut self.answers;
                    let call = || Invocation::of(request.method(), request.params());
                    let done = |outcome: &Outcome| answers.answer_call(&context, outcome);
                    let entered = self.dispatcher.call(call, &context, poller, done);
                    self.entered(entered, context);
                }
                Some(Turn::Other(entry)) => self.enter(entry, poller),
            }
        }
    }

    /// What is left to do for a request whose handler was entered.
    #[inline]
    fn entered(&mut self, entered: Entered<Outcome>, context: Context) {
        match entered {
            Entered::Done if context.has_opened() => self.opened.push(context),
            Entered::Done => self.spare = Some(context),
            Entered::Panicked => self.answers.answer(id_of(&context), &panicked()),
            Entered::Waits(call) => self.wait_for(call, context),
        }
    }

    fn enter(&mut self, entry: Entry, poller: &mut Poller<'_>) {
        match entry {
            Ok(Message::Request(request))
                if self.cancelled.as_ref().is_some_and(|all| all.contains(&request.id)) =>
            {
                if let Some(error) = self.cancelled_answer() {
                    self.answers.answer(&request.id, &Err(error));
                }
            }
            Ok(Message::Request(Request { id, method, params, trace })) => {
                let context = Context::reuse(self.spare.take(), id, &self.origin);
                let answers = &mut self.answers;
                let call = || Invocation::received(method, params, trace);
                let done = |outcome: &Outcome| answers.answer_call(&context, outcome);
                let entered = self.dispatcher.call(call, &context, poller, done);
                self.entered(entered, context);
            }
            Ok(Message::Notification(notification)) => self.notify(notification, poller),
            Ok(Message::Response(_)) => {}
            Err(invalid) if invalid.intent == Intent::Response => {}
            Err(invalid) => {
                tracing::debug!(id = %invalid.id, error = %invalid.error, "no valid message");
                self.answers.answer(&invalid.id, &Err(invalid.error));
            }
        }
    }

    /// Enters the handler of a notification, unless it is one that has its meaning here.
    fn notify(&mut self, notification: Notification, poller: &mut Poller<'_>) {
        if let Some(cancelled) = self.cancels(&notification) {
            return self.cancel_any(cancelled);
        }
        let Notification { method, params, trace } = notification;
        let context = Context::new(None, self.origin.clone());
        let call = Invocation::received(method, params, trace);
        let mut follower = None;
        if let Some(peer) = self.origin.peer() {
            if peer.hears(call.method.as_bytes(), call.params.as_ref()) {
                return;
            }
            follower = peer.followed(call.params.as_ref());
        }
        let (follower, delivered) =
            follower.map(|Delivery { feed, delivered }| (feed, delivered)).unzip();
        let notify = || match delivered {
            Some(delivered) => delivered,
            None => self.dispatcher.handler.notify(call, context.clone()),
        };
        let entered = in_order(&self.origin, || Caught::enter(notify, poller, |()| ()));
        if let Entered::Waits(done) = entered {
            self.notification = Some((done, context));
            self.follower = follower;
        }
    }

    /// The follower that all this waits for, if it is one.
    pub(super) fn follower(&self) -> Option<&Arc<Feed>> {
        self.follower.as_ref().filter(|_| self.notification.is_some())
    }

    /// The call that this cancels, if it is a cancellation.
    fn cancels(&self, notification: &Notification) -> Option<Option<Id>> {
        self.origin.peer()?.shared.cancellation()?.cancels(notification)
    }

    /// Cancels a call that is here, or elsewhere on the connection.
    fn cancel_any(&mut self, id: Option<Id>) {
        let (Some(id), Origin::Peer(peer)) = (id, self.origin.clone()) else { return };
        peer.shared.cancel_running(&id);
        let unstarted = std::mem::take(&mut self.unstarted);
        // What comes behind it is not meant.
        self.cancel_call(&id);
        self.unstarted = unstarted;
    }

    /// Keeps a call that waits, and the place of its answer.
    pub(super) fn wait_for(&mut self, call: Caught<Outcome>, context: Context) {
        let place = self.answers.keep(context);
        self.calls.push(Served { place, call, _pass: self.gate.pass() });
    }

    /// True when a call has ended.
    fn poll_calls(&mut self, poller: &mut Poller<'_>) -> bool {
        let mut ended = false;
        while let Some((place, outcome)) = self.calls.poll_ended(poller) {
            ended = true;
            let context = self.answers.settle(place, outcome);
            self.opened.extend(context.filter(Context::has_opened));
        }
        ended
    }

    /// True when time is up.
    fn poll_deadline(&mut self, poller: &mut Poller<'_>) -> bool {
        let Some(timeout) = self.dispatcher.limits.request_timeout else { return false };
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
        deadline.as_mut().poll(poller).is_ready()
    }
}

/// A run that is dropped in the middle takes along what it has set going. One that is over is dropped
/// once its answer is queued: what it has opened follows.
impl Drop for Run {
    fn drop(&mut self) {
        self.cancel();
        self.opened.iter().for_each(Context::answered);
    }
}

/// An id to be remembered, on its own: a long one would keep the frame that it came in.
pub(super) fn short(id: &Id) -> Option<Id> {
    const MAX: usize = 64;
    let text = Some(id.as_str()).filter(|text| text.len() <= MAX)?;
    Id::from_json(RawJson::parse(text.to_owned()).ok()?)
}

/// Polls the handler of a notification: calls that it makes give up its place in the order.
fn in_order<T>(origin: &Origin, poll: impl FnOnce() -> T) -> T {
    let _order = origin.peer().map(|peer| peer.shared.keep_order());
    poll()
}
