//! What the handles of a connection and the connection itself share: the session and the outbox.
//!
//! One lock, held for a few instructions and never across a wait; whoever is to be woken is woken
//! after it is released.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use antiphon_core::{
    Answered, Code, ErrorObject, Id, Invalid, RawJson, Refused, Response, Session, Ticket,
};
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use super::subscriptions::{Asked, Subscriptions};
use super::writer::{Outbox, Outgoing};
use crate::call::{CallError, Stop};
use crate::connection::Connection;
use crate::context::Context;
use crate::dialect::Cancellation;
use crate::engine::{EndRun, RunControl, Settings};
use crate::subscription::SHUTTING_DOWN;

/// What the handles and the connection share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Something has been queued or asked since the connection last looked; without it, the
    /// connection takes no lock.
    news: AtomicBool,
    /// Calls made by the handlers of notifications: while there are any, the order gives way.
    pub(super) ordered_calls: AtomicUsize,
    pub(super) ended: watch::Sender<Option<Arc<str>>>,
    pub(crate) facts: Connection,
    pub(super) settings: Arc<Settings>,
    /// This side serves nothing: whatever comes in is an answer.
    pub(super) only_calls: bool,
    pub(super) subscriptions: Subscriptions,
    reported_stray: AtomicBool,
}

pub(super) type Answer = Result<RawJson, CallError>;

/// Who waits for an answer.
pub(super) enum Waiter {
    Call(oneshot::Sender<Answer>),
    Subscription(Box<Asked>),
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
    pub(super) session: Session<Waiter, Running>,
    pub(super) outbox: Outbox,
    pub(super) stop: Option<Stop>,
    pub(super) ended: Option<Arc<str>>,
}

impl State {
    pub(super) fn refused(&self, refused: Refused) -> CallError {
        match (refused, &self.ended) {
            (Refused::Closed, Some(reason)) => CallError::Closed(reason.clone()),
            (Refused::Closed, None) => CallError::closed("no answer can come any more"),
            (refused, _) => CallError::Refused(refused),
        }
    }
}

/// A request of the other side whose handler has become a task.
pub(super) struct Running {
    pub(super) context: Context,
    pub(super) control: Arc<RunControl>,
}

/// Why a reader goes on although there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeedsReader {
    /// A call waits for an answer, which may be next.
    ForAnswers,
    /// A sender waits for room, which the other side may give only if we listen.
    ForRoom,
    /// A call may be cancelled: what is not can wait.
    ForCancels,
    /// It need not.
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
        };
        Self {
            state: Mutex::new(state),
            news: AtomicBool::new(true),
            ordered_calls: AtomicUsize::new(0),
            ended: watch::Sender::new(None),
            facts,
            settings,
            only_calls,
            subscriptions: Subscriptions::default(),
            reported_stray: AtomicBool::new(false),
        }
    }

    /// A panic while the lock is held leaves nothing half done: each holder makes one change.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the connection look.
    pub(super) fn wake_connection(&self, mut state: MutexGuard<'_, State>) {
        let connection = state.outbox.take_waker();
        self.news.store(true, Ordering::Release);
        drop(state);
        if let Some(connection) = connection {
            connection.wake();
        }
    }

    /// Whether there is something to look at.
    pub(super) fn has_news(&self) -> bool {
        self.news.load(Ordering::Acquire)
    }

    /// Whether there is something to look at; asked by the connection, which then looks.
    pub(super) fn take_news(&self) -> bool {
        self.news.load(Ordering::Acquire) && self.news.swap(false, Ordering::AcqRel)
    }

    /// Queues one message of our own.
    pub(super) fn enqueue(&self, message: Outgoing) -> Result<(), CallError> {
        let mut state = self.state();
        if let Some(reason) = &state.ended {
            return Err(CallError::Closed(reason.clone()));
        }
        state.outbox.push(message);
        self.wake_connection(state);
        Ok(())
    }

    /// Ends the only exchange that waits, if there is just one.
    pub(super) fn fail_only_exchange(&self, error: impl Fn() -> CallError) -> bool {
        let waiters = self.state().session.answer_only_exchange();
        let any = !waiters.is_empty();
        for waiter in waiters {
            waiter.send(Err(error()));
        }
        any
    }

    /// What keeps the reader going when there is no room.
    pub(super) fn needs_reader(&self) -> NeedsReader {
        let state = self.state();
        if state.session.pending() > 0 {
            NeedsReader::ForAnswers
        } else if state.outbox.has_waiting_senders() {
            NeedsReader::ForRoom
        } else if self.cancellation().is_some() {
            NeedsReader::ForCancels
        } else {
            NeedsReader::No
        }
    }

    /// How calls are cancelled on this connection, if they can be.
    pub(super) fn cancellation(&self) -> Option<&Cancellation> {
        self.settings.dialect.as_ref()?.cancellation.as_ref()
    }

    /// Cancels the requests of this id whose handlers have become tasks.
    pub(super) fn cancel_running(&self, id: &Id) {
        let controls: Vec<_> =
            self.state().session.running(id).map(|running| running.control.clone()).collect();
        controls.iter().for_each(|control| control.cancel(id.clone()));
    }

    /// Whether a call of ours waits for the other side.
    pub(super) fn awaits_answers(&self) -> bool {
        self.state().session.pending() > 0
    }

    /// Gives an answer to whom it is for. An answer that nobody asked for is reported and ends there.
    pub(super) fn answer(&self, response: Response) {
        let answered = self.state().session.answer(&response.id);
        match answered {
            Answered::Waiter(waiter) => {
                waiter.send(response.outcome.map_err(CallError::Rpc));
            }
            Answered::Late => match self.subscriptions.take_forsaken(&response.id) {
                Some(asked) => asked.answered(response.outcome.map_err(CallError::Rpc)),
                None => tracing::debug!(id = %response.id, "an answer came too late"),
            },
            Answered::Unknown => self.answer_without_id(&response),
        }
    }

    /// An error with a null id can only be about the one message that waits, if there is just one.
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
            self.report_stray(&response.id, "an answer that nobody asked for");
        }
        for waiter in waiters {
            waiter.send(response.outcome.clone().map_err(CallError::Rpc));
        }
    }

    /// A response that is none: its call, if it names one, learns so; the connection goes on.
    pub(super) fn answer_invalid(&self, invalid: &Invalid) {
        let reason = invalid.error.to_string();
        let answered = self.state().session.answer(&invalid.id);
        match answered {
            Answered::Waiter(waiter) => {
                waiter.send(Err(CallError::Protocol(reason)));
            }
            Answered::Late | Answered::Unknown => {
                self.report_stray(&invalid.id, "an answer that is no valid Response");
            }
        }
    }

    /// Retires requests and queues their answer, in one step: a connection that is closing must not
    /// find neither.
    pub(super) fn finish(&self, tickets: &[(Id, Ticket)], answer: Option<Bytes>) {
        let mut state = self.state();
        for (id, ticket) in tickets {
            state.session.finish(id, *ticket);
        }
        if let Some(answer) = answer
            && state.ended.is_none()
        {
            state.outbox.push(Outgoing::Answer(answer));
        }
        self.wake_connection(state);
    }

    /// Whether no request runs and no message waits.
    pub(super) fn is_done(&self) -> bool {
        let served = self.subscriptions.serves_none();
        let state = self.state();
        served && state.session.is_idle() && state.outbox.is_empty()
    }

    /// Reports an answer of no use: the first aloud, the others quietly, or a peer could fill the log.
    /// What it says is nobody's business.
    fn report_stray(&self, id: &Id, what: &str) {
        let id: String = id.as_str().chars().take(64).collect();
        if self.reported_stray.swap(true, Ordering::Relaxed) {
            tracing::debug!(id, "{what}");
        } else {
            tracing::warn!(id, "{what}");
        }
    }

    /// Asks the connection to end; a later, sharper way replaces an earlier one.
    pub(super) fn stop(&self, how: Stop) {
        self.subscriptions.close(SHUTTING_DOWN);
        self.subscriptions.drain();
        let mut state = self.state();
        state.stop = state.stop.max(Some(how));
        self.wake_connection(state);
    }

    /// No answer can come any more: every call ends, and none can be made.
    pub(super) fn end_calls(&self, reason: &Arc<str>) {
        let waiters = self.state().session.close_calls();
        for waiter in waiters {
            waiter.send(Err(CallError::Interrupted(reason.clone())));
        }
    }

    /// Tells every task to answer now.
    pub(super) fn expire_running(&self) {
        let controls: Vec<_> =
            self.state().session.all_running().map(|running| running.control.clone()).collect();
        controls.iter().for_each(|control| control.end(EndRun::Expire));
    }

    /// The connection is over: nothing is left waiting, running or queued.
    pub(super) fn end(&self, reason: Arc<str>) {
        self.end_calls(&reason);
        let mut state = self.state();
        state.ended = Some(reason.clone());
        let running = state.session.close_running();
        let wakers = state.outbox.close();
        drop(state);
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
