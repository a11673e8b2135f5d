//! One payload under way.
//!
//! Its entries are entered in order and polled in place; what is not ready at once is kept and polled
//! on. Notifications finish before the next entry starts (contract 5). HTTP drives a `Run` inside the
//! request's own future, a connection inside its own, until nothing in it must keep the order; then it
//! becomes a task.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context as Poller;

use antiphon_core::{
    Entries, Entry, ErrorObject, Id, Intent, LazyEntry, Message, Notification, Outcome, RawJson,
    Request,
};
use bytes::Bytes;
use tokio::time::{Sleep, sleep};

use super::dispatcher::{Dispatcher, Started};
use super::in_flight::InFlight;
use super::notification_order;
use super::ordered_replies::OrderedReplies;
use super::pending_calls::PendingCalls;
use super::requests::Requests;
use crate::call::{Intercepted, Invocation};
use crate::catch_unwind::{CatchUnwind, FirstPoll};
use crate::context::{Context, Origin};
use crate::subscription::Feed;

/// One payload under way.
pub(crate) struct Run {
    /// Entries that wait for their turn.
    unstarted: Entries,
    requests: Requests,
    notification: Option<(CatchUnwind<()>, Context)>,
    /// Where the notification goes that waits, if that is to a subscription's follower.
    follower: Option<Arc<Feed>>,
    deadline: Option<Pin<Box<Sleep>>>,
}

/// How far a run has come.
pub(crate) enum RunState {
    /// It is over; this is the answer, if it has one.
    Done(Option<Bytes>),
    /// All is started and nothing keeps the order: it can be a task of its own.
    Detached,
    /// An entry waits for room or for a notification: nothing behind it may start.
    Blocked,
}

/// Answers entries with this error.
pub(super) fn refuse(entries: Entries, error: &ErrorObject, answers: &mut OrderedReplies) {
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
        gate: Option<&Arc<InFlight>>,
        origin: &Origin,
    ) -> Box<Self> {
        let requests = Requests::new(dispatcher, entries.len(), is_batch, gate, origin);
        Box::new(Self {
            unstarted: entries,
            requests,
            notification: None,
            follower: None,
            deadline: None,
        })
    }

    pub(super) fn started(mut self: Box<Self>, poller: &mut Poller<'_>) -> Started {
        match self.poll(poller) {
            RunState::Done(answer) if self.requests.opened.is_empty() => Started::Done(answer),
            // What it has opened waits until the answer is on its way.
            progress => Started::Running(progress, self),
        }
    }

    /// Goes as far as it can now.
    pub(crate) fn poll(&mut self, poller: &mut Poller<'_>) -> RunState {
        // A call that ends makes room for an entry that waits.
        let started = loop {
            let started = self.poll_entries(poller);
            if !self.requests.poll_calls(poller) || started {
                break started;
            }
        };
        self.poll_rest(started, poller)
    }

    /// What is to be said once entries and calls have been polled.
    pub(super) fn poll_rest(&mut self, started: bool, poller: &mut Poller<'_>) -> RunState {
        if started && self.requests.calls.is_empty() {
            let answer = self.requests.answers.finish(&ErrorObject::internal_error());
            if self.requests.answers.was_cut() {
                self.requests.opened.iter().for_each(Context::truncated);
            }
            return RunState::Done(answer);
        }
        if self.poll_deadline(poller) {
            return RunState::Done(self.expire(&ErrorObject::timed_out()));
        }
        if started { RunState::Detached } else { RunState::Blocked }
    }

    /// Ends it now: what has not finished is cancelled, and answered with this error.
    pub(crate) fn expire(&mut self, error: &ErrorObject) -> Option<Bytes> {
        self.refuse_rest(error);
        self.cancel();
        self.requests.answers.finish(error)
    }

    /// Cancels the calls of this id. One that has not started will not; one that is over stays as it
    /// is.
    pub(crate) fn cancel_call(&mut self, id: &Id) {
        let answer = self.requests.cancelled_answer();
        let places = self.requests.answers.missing_at(id);
        for &place in &places {
            if let Some(context) = self.requests.answers.cancel(place, answer.clone()) {
                context.cancel();
            }
        }
        self.requests.calls.remove(&places);
        if !self.requests.answers.is_batch() {
            return self.cancel_unstarted(id, answer);
        }
        // No more of them than can be meant.
        let most = self.unstarted.len();
        if most > 0
            && let Some(id) = short_id(id)
        {
            let cancelled = self.requests.cancelled.get_or_insert_default();
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
            self.requests.answers.answer(id, &Err(error));
        }
    }

    /// Drops what runs, and tells whatever it has set going.
    fn cancel(&mut self) {
        for (_, context) in self.running() {
            context.cancel();
        }
        if let Some((_, context)) = self.notification.take() {
            context.cancel();
        }
        self.requests.calls = PendingCalls::None;
    }

    /// Whether it waits for a notification, rather than for room.
    pub(crate) fn keeps_order(&self) -> bool {
        self.notification.is_some()
    }

    /// The ids and contexts of what runs.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&Id, &Context)> {
        self.requests.answers.missing()
    }

    /// Answers what has not started with this error.
    pub(crate) fn refuse_rest(&mut self, error: &ErrorObject) {
        refuse(std::mem::take(&mut self.unstarted), error, &mut self.requests.answers);
    }

    /// Enters entries until one must wait; true when all were entered and all notifications done.
    fn poll_entries(&mut self, poller: &mut Poller<'_>) -> bool {
        loop {
            if let Some((notification, _)) = &mut self.notification {
                if in_order(&self.requests.origin, || notification.poll(poller)).is_pending() {
                    return false;
                }
                self.notification = None;
            }
            if self.unstarted.next_is_request() && self.requests.in_flight.poll_full(poller) {
                return false;
            }
            match self.unstarted.next_lazy() {
                None => return true,
                Some(LazyEntry::Request(request)) => {
                    let call = || Invocation::of(request.method(), request.params());
                    self.requests.enter(request.id(), call, poller);
                }
                Some(LazyEntry::Other(entry)) => self.enter(entry, poller),
            }
        }
    }

    fn enter(&mut self, entry: Entry, poller: &mut Poller<'_>) {
        match entry {
            Ok(Message::Request(Request { id, method, params, trace })) => {
                self.requests.enter(id, || Invocation::received(method, params, trace), poller);
            }
            Ok(Message::Notification(notification)) => self.notify(notification, poller),
            Ok(Message::Response(_)) => {}
            Err(invalid) if invalid.intent == Intent::Response => {}
            Err(invalid) => {
                tracing::debug!(id = %invalid.id, error = %invalid.error, "no valid message");
                self.requests.answers.answer(&invalid.id, &Err(invalid.error));
            }
        }
    }

    /// Enters the handler of a notification, unless it is one that has its meaning here.
    fn notify(&mut self, notification: Notification, poller: &mut Poller<'_>) {
        if let Some(cancelled) = self.cancels(&notification) {
            return self.cancel_any(cancelled);
        }
        let Notification { method, params, trace } = notification;
        let context = Context::new(None, self.requests.origin.clone());
        let call = Invocation::received(method, params, trace);
        let intercepted = self.requests.origin.peer().map(|peer| peer.link().intercept(&call));
        let (follower, delivered) = match intercepted {
            Some(Intercepted::Progress) => return,
            Some(Intercepted::Item(feed, delivered)) => (Some(feed), Some(delivered)),
            Some(Intercepted::No) | None => (None, None),
        };
        let notify = || match delivered {
            Some(delivered) => delivered,
            None => self.requests.dispatcher.handler.notify(call, context.clone()),
        };
        let entered =
            in_order(&self.requests.origin, || CatchUnwind::enter(notify, poller, |()| ()));
        if let FirstPoll::Waits(done) = entered {
            self.notification = Some((done, context));
            self.follower = follower;
        }
    }

    /// The follower that all this waits for, if it is one.
    pub(crate) fn follower(&self) -> Option<&Arc<Feed>> {
        self.follower.as_ref().filter(|_| self.notification.is_some())
    }

    /// The call that this cancels, if it is a cancellation.
    fn cancels(&self, notification: &Notification) -> Option<Option<Id>> {
        self.requests.origin.peer()?;
        self.requests.cancellation()?.cancels(notification)
    }

    /// Cancels a call that is here, or elsewhere on the connection.
    fn cancel_any(&mut self, id: Option<Id>) {
        let (Some(id), Origin::Peer(peer)) = (id, self.requests.origin.clone()) else { return };
        peer.link().cancel_running(&id);
        let unstarted = std::mem::take(&mut self.unstarted);
        // What comes behind it is not meant.
        self.cancel_call(&id);
        self.unstarted = unstarted;
    }

    /// Keeps a call that waits.
    pub(super) fn wait_for_call(&mut self, call: CatchUnwind<Outcome>, context: Context) {
        self.requests.wait_for(call, context);
    }

    /// True when time is up.
    fn poll_deadline(&mut self, poller: &mut Poller<'_>) -> bool {
        let Some(timeout) = self.requests.dispatcher.settings.limits.request_timeout else {
            return false;
        };
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
        deadline.as_mut().poll(poller).is_ready()
    }
}

/// A run that is dropped in the middle takes along what it has set going. One that is over is dropped
/// once its answer is queued: what it has opened follows.
impl Drop for Run {
    fn drop(&mut self) {
        self.cancel();
        self.requests.opened.iter().for_each(Context::replied);
    }
}

/// An id to be remembered, on its own: a long one would keep the frame that it came in.
pub(crate) fn short_id(id: &Id) -> Option<Id> {
    const MAX: usize = 64;
    let text = Some(id.as_str()).filter(|text| text.len() <= MAX)?;
    Id::from_json(RawJson::parse(text.to_owned()).ok()?)
}

/// Polls the handler of a notification: calls that it makes give up its place in the order.
fn in_order<T>(origin: &Origin, poll: impl FnOnce() -> T) -> T {
    let _order = origin.peer().map(|peer| notification_order::keep(Arc::as_ptr(peer.link())));
    poll()
}
