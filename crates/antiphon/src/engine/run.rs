//! The execution of one payload.
//!
//! The entries start in order and are polled in place; unfinished calls are kept and polled again. A
//! notification finishes before the next entry starts (contract 5). An HTTP request drives a `Run` inside
//! its own future. A connection drives it inside its own task until nothing in it must keep the order,
//! and then spawns it.

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
use super::notification_guard;
use super::ordered_replies::OrderedReplies;
use super::pending_calls::PendingCalls;
use super::requests::Requests;
use crate::call::{Intercepted, Invocation};
use crate::catch_unwind::{CatchUnwind, FirstPoll};
use crate::context::{Context, Origin};
use crate::dialect::ErrorStyle;
use crate::subscription::FollowedSubscription;

/// The execution of one payload.
pub(crate) struct Run {
    /// The entries that have not started.
    unstarted: Entries,
    requests: Requests,
    notification: Option<(CatchUnwind<()>, Context)>,
    /// The followed subscription that `notification` is delivered to, if it is the item of a subscription.
    follower: Option<Arc<FollowedSubscription>>,
    deadline: Option<Pin<Box<Sleep>>>,
}

/// The state of a run after a poll.
pub(crate) enum RunState {
    /// The run is finished, with its reply if it has one.
    Done(Option<Bytes>),
    /// All entries have started and no notification is unfinished. The run can be spawned as a task.
    Detached,
    /// An entry waits for the in-flight limit or for a notification. Nothing behind it may start.
    Blocked,
}

/// Answers the requests among these entries with this error.
pub(super) fn refuse(
    entries: Entries,
    error: &ErrorObject,
    style: ErrorStyle,
    answers: &mut OrderedReplies,
) {
    for entry in entries {
        match entry {
            Ok(Message::Request(request)) => answers.answer(&request.id, &Err(error.clone())),
            Err(invalid) if invalid.intent != Intent::Request => {}
            Err(invalid) => answers.answer(&invalid.id, &Err(style.apply(invalid.error))),
            Ok(Message::Notification(_) | Message::Response(_)) => {}
        }
    }
}

impl Run {
    pub(super) fn new(
        dispatcher: &Dispatcher,
        entries: Entries,
        is_batch: bool,
        in_flight: Option<&Arc<InFlight>>,
        origin: &Origin,
    ) -> Box<Self> {
        let requests = Requests::new(dispatcher, entries.len(), is_batch, in_flight, origin);
        Box::new(Self {
            unstarted: entries,
            requests,
            notification: None,
            follower: None,
            deadline: None,
        })
    }

    /// Polls the run for the first time.
    pub(super) fn started(mut self: Box<Self>, poller: &mut Poller<'_>) -> Started {
        match self.poll(poller) {
            RunState::Done(answer) if self.requests.opened.is_empty() => Started::Done(answer),
            // Subscriptions that the run has opened are released when it is dropped, after the reply is
            // queued.
            state => Started::Running(state, self),
        }
    }

    /// Starts entries and polls calls as far as possible.
    pub(crate) fn poll(&mut self, poller: &mut Poller<'_>) -> RunState {
        // A call that finishes may let an entry start that waits for the in-flight limit.
        let started = loop {
            let started = self.poll_entries(poller);
            if !self.requests.poll_calls(poller) || started {
                break started;
            }
        };
        self.poll_rest(started, poller)
    }

    /// Returns the state after entries and calls were polled, and polls the deadline.
    pub(super) fn poll_rest(&mut self, started: bool, poller: &mut Poller<'_>) -> RunState {
        if started && self.requests.calls.is_empty() {
            return RunState::Done(self.finish(&ErrorObject::internal_error()));
        }
        if self.poll_deadline(poller) {
            let late = self.requests.styled(ErrorObject::timed_out());
            return RunState::Done(self.expire(&late));
        }
        if started { RunState::Detached } else { RunState::Blocked }
    }

    /// Ends the run now. Unfinished calls are cancelled and answered with this error.
    pub(crate) fn expire(&mut self, error: &ErrorObject) -> Option<Bytes> {
        self.refuse_rest(error);
        self.cancel();
        self.finish(error)
    }

    /// Returns the reply. Calls without an outcome are answered with this error.
    fn finish(&mut self, error: &ErrorObject) -> Option<Bytes> {
        let answer = self.requests.answers.finish(error);
        if self.requests.answers.was_cut() {
            self.requests.opened.iter().for_each(Context::truncated);
        }
        answer
    }

    /// Cancels the calls with this id. A call that has not started will not start, and a call that has
    /// finished is not affected.
    pub(crate) fn cancel_call(&mut self, id: &Id) {
        let answer = self.requests.cancelled_answer();
        let slots = self.requests.answers.missing_at(id);
        for &slot in &slots {
            if let Some(context) = self.requests.answers.cancel(slot, answer.clone()) {
                context.cancel();
            }
        }
        self.requests.calls.remove(&slots);
        if !self.requests.answers.is_batch() {
            return self.cancel_unstarted(id, answer);
        }
        // A batch needs no more ids than it has entries, so a peer cannot make the set grow further.
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

    /// Cancels a single request that waits for the in-flight limit. It is answered at once.
    fn cancel_unstarted(&mut self, id: &Id, answer: Option<ErrorObject>) {
        let is_it =
            |entry: &Entry| matches!(entry, Ok(Message::Request(request)) if request.id == *id);
        let (it, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.unstarted).partition(is_it);
        self.unstarted = Entries::from_iter(others);
        if let (false, Some(error)) = (it.is_empty(), answer) {
            self.requests.answers.answer(id, &Err(error));
        }
    }

    /// Takes the notifications that follow the reply.
    pub(super) fn take_followers(&self) -> Vec<Bytes> {
        self.requests.opened.iter().flat_map(Context::take_followers).collect()
    }

    /// Drops the running calls, and cancels the tokens that their handlers have passed on.
    fn cancel(&mut self) {
        for (_, context) in self.running() {
            context.cancel();
        }
        if let Some((_, context)) = self.notification.take() {
            context.cancel();
        }
        self.requests.calls = PendingCalls::None;
    }

    /// Whether the run waits for a notification, and not for the in-flight limit.
    pub(crate) fn keeps_order(&self) -> bool {
        self.notification.is_some()
    }

    /// The ids and contexts of the running calls.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&Id, &Context)> {
        self.requests.answers.missing()
    }

    /// The context of the notification that the run waits for.
    pub(crate) fn notification(&self) -> Option<&Context> {
        self.notification.as_ref().map(|(_, context)| context)
    }

    /// Answers the entries that have not started with this error.
    pub(crate) fn refuse_rest(&mut self, error: &ErrorObject) {
        let (rest, style) = (std::mem::take(&mut self.unstarted), self.requests.error_style());
        refuse(rest, error, style, &mut self.requests.answers);
    }

    /// Like [`refuse_rest`](Self::refuse_rest), but notifications still start in their turn: they take no
    /// place in the in-flight limit.
    pub(crate) fn refuse_requests(&mut self, error: &ErrorObject) {
        let is_notification = |entry: &Entry| matches!(entry, Ok(Message::Notification(_)));
        let (kept, refused): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.unstarted).partition(is_notification);
        let (refused, style) = (Entries::from_iter(refused), self.requests.error_style());
        refuse(refused, error, style, &mut self.requests.answers);
        self.unstarted = Entries::from_iter(kept);
    }

    /// Starts entries until one must wait. Returns true if all have started and no notification is
    /// unfinished.
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
            Err(invalid) if invalid.intent != Intent::Request => {}
            Err(invalid) => {
                tracing::debug!(id = %invalid.id, error = %invalid.error, "an invalid message");
                let error = self.requests.styled(invalid.error);
                self.requests.answers.answer(&invalid.id, &Err(error));
            }
        }
    }

    /// Calls the handler of a notification, unless it is a cancellation, progress or an item, which
    /// the connection handles.
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

    /// The followed subscription of the slow subscriber that the run waits for, if it waits for one.
    pub(crate) fn follower(&self) -> Option<&Arc<FollowedSubscription>> {
        self.follower.as_ref().filter(|_| self.notification.is_some())
    }

    /// Returns `Some` if the notification is a cancellation, with the id that it cancels if that can be
    /// read.
    fn cancels(&self, notification: &Notification) -> Option<Option<Id>> {
        self.requests.origin.peer()?;
        self.requests.cancellation()?.cancels(notification)
    }

    /// Cancels a call of this run, or of another run of the connection.
    fn cancel_any(&mut self, id: Option<Id>) {
        let (Some(id), Origin::Peer(peer)) = (id, self.requests.origin.clone()) else { return };
        let unstarted = std::mem::take(&mut self.unstarted);
        for id in self.requests.dispatcher.settings.cancelled_ids(&id) {
            peer.link().cancel_running(&id);
            // A cancellation has no effect on entries behind it in the batch.
            self.cancel_call(&id);
        }
        self.unstarted = unstarted;
    }

    /// Keeps a call that has not finished.
    pub(super) fn wait_for_call(&mut self, call: CatchUnwind<Outcome>, context: Context) {
        self.requests.wait_for(call, context);
    }

    /// Whether the request timeout is over.
    fn poll_deadline(&mut self, poller: &mut Poller<'_>) -> bool {
        let Some(timeout) = self.requests.dispatcher.settings.limits.request_timeout else {
            return false;
        };
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
        deadline.as_mut().poll(poller).is_ready()
    }
}

/// A run that is dropped before its end cancels its calls. A finished run is dropped after its reply is
/// queued, and the items of subscriptions that it has opened may follow.
impl Drop for Run {
    fn drop(&mut self) {
        self.cancel();
        self.requests.opened.iter().for_each(Context::replied);
    }
}

/// Copies an id to be remembered; `None` if it is long. A clone would share the buffer of the frame that
/// it came in, and keep the whole frame in memory.
pub(crate) fn short_id(id: &Id) -> Option<Id> {
    const MAX: usize = 64;
    let text = Some(id.as_str()).filter(|text| text.len() <= MAX)?;
    Some(Id::from_json(RawJson::parse(text.to_owned()).ok()?)?.in_version(id.version()))
}

/// Polls the handler of a notification. While a call that it makes is pending, requests may overtake the
/// notification.
fn in_order<T>(origin: &Origin, poll: impl FnOnce() -> T) -> T {
    let _order = origin.peer().map(|peer| notification_guard::enter(Arc::as_ptr(peer.link())));
    poll()
}
