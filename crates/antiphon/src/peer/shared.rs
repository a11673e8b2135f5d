//! The state that a connection shares with its handles and tasks: the session and the outbox.
//!
//! It has one lock, which is held for a few instructions and never across an await. Wakers are called
//! after the lock is released.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use antiphon_core::{
    Answered, Code, ErrorObject, Id, Invalid, RawJson, Refused, Response, Session, Ticket,
};
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use super::progress::WatchedCalls;
use super::spawned_tasks::SpawnedTasks;
use super::subscriptions::{PendingSubscription, Subscriptions};
use super::writer::{Outbox, Outgoing};
use crate::call::{CallError, Stop};
use crate::connection::Connection;
use crate::context::Context;
use crate::dialect::Cancellation;
use crate::engine::{EndRun, RunControl, Settings};
use crate::error::CloseReason;
use crate::subscription::SHUTTING_DOWN;

/// The state that a connection shares with its handles and tasks.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// A message was queued or a stop requested since the connection last collected. While it is
    /// false, the connection does not take the lock.
    changed: AtomicBool,
    /// The number of pending calls that handlers of notifications have made. While it is above 0,
    /// requests may overtake the notification.
    pub(super) ordered_calls: AtomicUsize,
    pub(super) ended: watch::Sender<Option<CloseReason>>,
    pub(crate) facts: Connection,
    pub(super) settings: Arc<Settings>,
    /// This side has no handler: every incoming message is taken as a response.
    pub(super) only_calls: bool,
    pub(super) subscriptions: Subscriptions,
    pub(super) watched_calls: WatchedCalls,
    reported_stray: AtomicBool,
    reported_overtaking: AtomicBool,
    /// A notification has overtaken the messages before it.
    pub(super) has_overtaken: AtomicBool,
}

pub(super) type Answer = Result<RawJson, CallError>;

/// The receiver of a response.
pub(super) enum Waiter {
    Call(oneshot::Sender<Answer>),
    Subscription(Box<PendingSubscription>),
}

impl Waiter {
    pub(super) fn send(self, answer: Answer) {
        match self {
            Self::Call(waiter) => drop(waiter.send(answer)),
            Self::Subscription(asked) => asked.answered(answer),
        }
    }
}

pub(super) struct State {
    pub(super) session: Session<Waiter, RunningCall>,
    pub(super) outbox: Outbox,
    pub(super) stop: Option<Stop>,
    pub(super) ended: Option<CloseReason>,
    /// The tasks that handlers have spawned. Created on first use.
    pub(super) tasks: Option<Box<SpawnedTasks>>,
}

impl State {
    pub(super) fn has_tasks(&self) -> bool {
        self.tasks.as_ref().is_some_and(|tasks| !tasks.is_idle())
    }

    pub(super) fn refused(&self, refused: Refused) -> CallError {
        match (refused, &self.ended) {
            (Refused::Closed, Some(reason)) => CallError::Closed(reason.clone()),
            (Refused::Closed, None) => {
                CallError::closed("the peer has ended its side, so no response can arrive")
            }
            (refused, _) => CallError::Refused(refused),
        }
    }
}

/// A request of the peer whose handler runs in a task.
pub(super) struct RunningCall {
    pub(super) context: Context,
    pub(super) control: Arc<RunControl>,
}

/// The reason to continue reading although a queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeedsReader {
    /// A call is pending, and the next frame may be its response.
    ForReplies,
    /// A sender waits for capacity. The peer may read from us only after we have read from it.
    ForCapacity,
    /// The peer may cancel a call. Any other message can wait.
    ForCancellations,
    /// There is no reason: reading can pause.
    No,
}

impl Shared {
    pub(super) fn new(facts: Connection, settings: Arc<Settings>, only_calls: bool) -> Self {
        let limits = &settings.limits;
        let state = State {
            session: Session::new(limits.pending_calls),
            outbox: Outbox::new(limits.write_queue_bytes),
            stop: None,
            ended: None,
            tasks: None,
        };
        Self {
            state: Mutex::new(state),
            changed: AtomicBool::new(true),
            ordered_calls: AtomicUsize::new(0),
            ended: watch::Sender::new(None),
            facts,
            settings,
            only_calls,
            subscriptions: Subscriptions::default(),
            watched_calls: WatchedCalls::default(),
            reported_stray: AtomicBool::new(false),
            reported_overtaking: AtomicBool::new(false),
            has_overtaken: AtomicBool::new(false),
        }
    }

    /// Locks the state. A poisoned lock is used: each holder makes one change, so a panic cannot leave
    /// the state half changed.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the lock, and wakes the connection to collect what has changed.
    pub(super) fn wake_connection(&self, mut state: MutexGuard<'_, State>) {
        let connection = state.outbox.take_waker();
        self.changed.store(true, Ordering::Release);
        drop(state);
        if let Some(connection) = connection {
            connection.wake();
        }
    }

    /// Whether there is something to collect.
    pub(super) fn has_changes(&self) -> bool {
        self.changed.load(Ordering::Acquire)
    }

    /// Returns whether there is something to collect, and resets the flag. The connection collects
    /// afterwards.
    pub(super) fn take_changes(&self) -> bool {
        self.changed.load(Ordering::Acquire) && self.changed.swap(false, Ordering::AcqRel)
    }

    /// Queues a message.
    pub(super) fn enqueue(&self, message: Outgoing) -> Result<(), CallError> {
        let mut state = self.state();
        if let Some(reason) = &state.ended {
            return Err(CallError::Closed(reason.clone()));
        }
        state.outbox.push(message);
        self.wake_connection(state);
        Ok(())
    }

    /// Fails the calls of the only unanswered message. Returns false if there is none, or several.
    pub(super) fn fail_only_exchange(&self, error: impl Fn() -> CallError) -> bool {
        let waiters = self.state().session.answer_only_exchange();
        let any = !waiters.is_empty();
        for waiter in waiters {
            waiter.send(Err(error()));
        }
        any
    }

    /// Returns why reading must continue while a queue is full.
    pub(super) fn needs_reader(&self) -> NeedsReader {
        let state = self.state();
        if state.session.pending() > 0 {
            NeedsReader::ForReplies
        } else if state.outbox.has_waiting_senders() {
            NeedsReader::ForCapacity
        } else if self.cancellation().is_some() {
            NeedsReader::ForCancellations
        } else {
            NeedsReader::No
        }
    }

    /// The cancellation of the dialect, if it has one.
    pub(super) fn cancellation(&self) -> Option<&Cancellation> {
        self.settings.cancellation()
    }

    /// Cancels the requests with this id whose handlers run in tasks.
    pub(super) fn cancel_running(&self, id: &Id) {
        let controls: Vec<_> =
            self.state().session.running(id).map(|running| running.control.clone()).collect();
        controls.iter().for_each(|control| control.cancel(id.clone()));
    }

    /// Whether a call of this side is pending.
    pub(super) fn awaits_answers(&self) -> bool {
        self.state().session.pending() > 0
    }

    /// Delivers a response to its call. A response that matches no call is logged and dropped.
    pub(super) fn answer(&self, response: Response) {
        let answered = self.state().session.answer(&response.id);
        match answered {
            Answered::Waiter(waiter) => {
                waiter.send(response.outcome.map_err(CallError::Rpc));
            }
            Answered::Late => match self.subscriptions.take_abandoned(&response.id) {
                Some(asked) => asked.answered(response.outcome.map_err(CallError::Rpc)),
                None => {
                    tracing::debug!(id = %response.id, "a response arrived after its call was abandoned");
                }
            },
            Answered::Unknown => self.answer_without_id(&response),
        }
    }

    /// Delivers an error with a null id, which can be matched only if exactly one message of this side
    /// is unanswered. Any other response is logged.
    fn answer_without_id(&self, response: &Response) {
        let about_a_message = |error: &ErrorObject| {
            [
                Code::PARSE_ERROR,
                Code::INVALID_REQUEST,
                Code::BATCHES_NOT_SUPPORTED,
                Code::REQUEST_TOO_LARGE,
                Code::BATCH_TOO_LARGE,
                Code::SERVER_BUSY,
            ]
            .contains(&error.code)
        };
        let waiters = match &response.outcome {
            Err(error) if response.id == Id::Null && about_a_message(error) => {
                self.state().session.answer_only_exchange()
            }
            _ => Vec::new(),
        };
        if waiters.is_empty() {
            self.report_stray(&response.id, "a response does not match any call");
        }
        for waiter in waiters {
            waiter.send(response.outcome.clone().map_err(CallError::Rpc));
        }
    }

    /// Handles an invalid response. The call with its id fails, if there is one. The connection
    /// continues.
    pub(super) fn answer_invalid(&self, invalid: &Invalid) {
        let answered = self.state().session.answer(&invalid.id);
        match answered {
            Answered::Waiter(waiter) => {
                waiter.send(Err(CallError::protocol(invalid.error.clone())));
            }
            Answered::Late | Answered::Unknown => {
                self.report_stray(&invalid.id, "an invalid response does not match any call");
            }
        }
    }

    /// Fails the call with the id of a message that has neither a method nor an outcome. Returns false if there is none:
    /// then the message counts as a request.
    pub(super) fn fail_call(&self, invalid: &Invalid) -> bool {
        let answered = self.state().session.answer(&invalid.id);
        let Answered::Waiter(waiter) = answered else { return false };
        let reason = "the response has neither a `result` nor an `error`";
        waiter.send(Err(CallError::protocol(reason)));
        true
    }

    /// Removes finished requests and queues their reply under one lock. Between two locks, a closing
    /// connection would find neither the request nor the reply, and drop the reply. The same holds for the
    /// messages that follow the reply.
    pub(super) fn finish(
        &self,
        tickets: &[(Id, Ticket)],
        answer: Option<Bytes>,
        followers: Vec<Bytes>,
    ) {
        let mut state = self.state();
        for (id, ticket) in tickets {
            state.session.finish(id, *ticket);
        }
        if state.ended.is_none() {
            for message in answer.into_iter().chain(followers) {
                state.outbox.push(Outgoing::Reply(message));
            }
        }
        self.wake_connection(state);
    }

    /// Whether no request and no task is running, no subscription is served and no message is queued.
    pub(super) fn is_done(&self) -> bool {
        let served = self.subscriptions.serves_none();
        let state = self.state();
        served && state.session.is_idle() && !state.has_tasks() && state.outbox.is_empty()
    }

    /// Logs a response that matches no call: the first one as a warning, the others at debug level, or
    /// a peer could fill the log. Its content is not logged, because it may be secret.
    fn report_stray(&self, id: &Id, what: &str) {
        let id: String = id.as_str().chars().take(64).collect();
        if self.reported_stray.swap(true, Ordering::Relaxed) {
            tracing::debug!(id, "{what}");
        } else {
            tracing::warn!(id, "{what}");
        }
    }

    /// Logs that a request overtakes a notification, once per connection.
    pub(super) fn report_overtaking(&self) {
        if !self.reported_overtaking.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                transport = self.facts.transport,
                "a request overtakes a notification whose handler waits for a call to the peer; make the \
                 call in `Context::spawn`, or keep the order with `Dialect::strict_order`"
            );
        }
    }

    /// Requests the end of the connection. [`Stop::Now`] replaces an earlier [`Stop::Gracefully`].
    pub(super) fn stop(&self, how: Stop) {
        self.subscriptions.close(SHUTTING_DOWN);
        self.subscriptions.drain();
        let mut state = self.state();
        state.stop = state.stop.max(Some(how));
        self.wake_connection(state);
    }

    /// Fails every pending call and rejects new ones, because no response can arrive any more.
    pub(super) fn end_calls(&self, reason: &CloseReason) {
        let waiters = self.state().session.close_calls();
        for waiter in waiters {
            waiter.send(Err(CallError::Interrupted(reason.clone())));
        }
    }

    /// Makes every running request answer now, with an error for what has not finished, and ends the tasks
    /// of handlers.
    pub(super) fn expire_running(&self) {
        let controls: Vec<_> =
            self.state().session.all_running().map(|running| running.control.clone()).collect();
        controls.iter().for_each(|control| control.end(EndRun::Expire));
        self.end_tasks();
    }

    /// Ends the connection: fails pending calls, aborts running requests, and drops queued messages.
    pub(super) fn end(&self, reason: CloseReason) {
        self.end_calls(&reason);
        let mut state = self.state();
        state.ended = Some(reason.clone());
        let running = state.session.close_running();
        let wakers = state.outbox.close();
        let tasks = state.tasks.is_some();
        drop(state);
        if tasks {
            self.end_tasks();
        }
        for running in running {
            running.context.cancel();
            running.control.end(EndRun::Abort);
        }
        wakers.into_iter().for_each(Waker::wake);
        self.subscriptions.end(&reason);
        self.settings.tap.closed(&self.facts, &reason);
        self.ended.send_replace(Some(reason));
    }
}
