//! One connection, both directions.
//!
//! A [`Peer`] is a handle to the other side; the connection itself is one future that reads,
//! dispatches and writes (`connection.rs`). What both share is [`Shared`]: the session and the
//! outbox, behind one lock that is held for a few instructions and never across a wait.
//!
//! Lock order: there is one lock. Wakers are called after it is released.

mod backlog;
mod connection;
pub(crate) mod dispatcher;
mod leash;
mod order;
mod reader;
mod watchdog;
mod writer;

use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use antiphon_core::{
    Answered, Code, ErrorObject, Id, Invalid, Limits, Params, RawJson, Refused, Response, Session,
    Ticket, encode,
};
use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use tokio::sync::{oneshot, watch};

use crate::BoxFuture;
use crate::call::{Batch, BatchEntry, Call, CallError, Caller, Invocation};
use crate::context::{Connection, Context};

pub(crate) use connection::{AtEnd, Side, Wire, connect};
use leash::{Leash, Pull};
pub(crate) use watchdog::Meter;
use writer::{Outbox, Outgoing};

/// A handle to the other side of a connection. Cheap to clone; it does not keep the connection open.
///
/// ```
/// # use antiphon::{CallError, Context, Router};
/// let router = Router::new().method("greet", |(): (), cx: Context| async move {
///     let name: String = cx.peer()?.call("your_name", ()).await?;
///     Ok::<_, CallError>(format!("hello, {name}"))
/// });
/// ```
#[derive(Clone)]
pub struct Peer {
    shared: Arc<Shared>,
}

impl Peer {
    /// Calls a method of the other side. Sent when awaited; dropping it abandons the call.
    pub fn call<R>(&self, method: &str, params: impl Serialize) -> Call<R> {
        Call::new(Arc::new(self.clone()), method, &params, None)
    }

    /// Notifies the other side. Waits while the write queue is full.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        let params = Params::encode(&params).map_err(CallError::Encode)?;
        self.post(Invocation::new(method, params)).await
    }

    /// Starts a batch.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::new(self.clone()), None)
    }

    /// Finishes what runs here, sends what is queued, and closes; waits until that is done.
    pub async fn close(&self) {
        self.shared.stop(Stop::Gracefully);
        self.closed().await;
    }

    /// Waits until the connection has ended, and says why.
    pub async fn closed(&self) -> Arc<str> {
        let mut ended = self.shared.ended.subscribe();
        let reason = ended.wait_for(Option::is_some).await;
        reason.map_or_else(|_| "closed".into(), |reason| reason.clone().unwrap_or_default())
    }

    pub(crate) fn stop(&self, how: Stop) {
        self.shared.stop(how);
    }

    /// Tells the other side of an error that belongs to no request.
    pub(crate) fn tell(&self, error: &ErrorObject) {
        let mut message = BytesMut::new();
        encode::response(&Id::Null, &Err(error.clone()), &mut message);
        let _ = self.shared.enqueue(Outgoing::Answer(message.freeze()));
    }

    /// Waits until the queue takes more, so that nobody can fill it without bound.
    async fn capacity(&self) -> Result<(), CallError> {
        std::future::poll_fn(|cx| {
            let mut state = self.shared.state();
            if let Some(reason) = &state.ended {
                return Poll::Ready(Err(CallError::Closed(reason.clone())));
            }
            let Err(connection) = state.outbox.poll_capacity(cx) else {
                return Poll::Ready(Ok(()));
            };
            drop(state);
            wake(connection);
            Poll::Pending
        })
        .await
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Caller for Peer {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(async move {
            let head = call_head(&call);
            self.capacity().await?;
            let (waiter, answer) = oneshot::channel();
            let _pending = self.shared.open(head, call.id, waiter)?;
            answer.await.unwrap_or_else(|_| Err(CallError::closed("the connection ended")))
        })
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            let mut message = call_head(&notification);
            message.put_u8(b'}');
            self.capacity().await?;
            self.shared.enqueue(Outgoing::Own(message.freeze()))
        })
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        Box::pin(async move {
            self.capacity().await?;
            let (_pending, answers) = self.shared.open_batch(&entries)?;
            let mut results = Vec::with_capacity(answers.len());
            for answer in answers {
                results.push(
                    answer.await.unwrap_or_else(|_| Err(CallError::closed("the connection ended"))),
                );
            }
            Ok(results)
        })
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&self.shared.facts).finish()
    }
}

/// `{"jsonrpc":"2.0","method":...,"params":...`: what does not depend on the id.
fn call_head(call: &Invocation) -> BytesMut {
    let mut out = BytesMut::with_capacity(128);
    encode::call_head(&call.method, call.params.as_ref(), &mut out);
    out
}

/// Calls that somebody waits for; dropped early, it abandons them.
struct Pending<'a> {
    shared: &'a Shared,
    ids: Range<u64>,
    named: Option<Id>,
    in_order: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.in_order {
            self.shared.ordered_calls.fetch_sub(1, Ordering::AcqRel);
        }
        let mut state = self.shared.state();
        let abandoned: Vec<_> =
            self.ids.clone().filter_map(|id| state.session.abandon(id)).collect();
        let named = self.named.as_ref().and_then(|id| state.session.abandon_named(id));
        // Dropping a waiter wakes whoever waits, which is not done under the lock.
        drop(state);
        drop((abandoned, named));
    }
}

/// How a connection is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// Refuse new requests, finish what runs, send what is queued.
    Gracefully,
    /// Cancel what runs.
    Now,
}

/// What the handles and the connection share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Calls made by the handlers of notifications: while there are any, the order gives way.
    ordered_calls: AtomicUsize,
    ended: watch::Sender<Option<Arc<str>>>,
    pub(crate) facts: Arc<Connection>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) tap: Option<Tap>,
    /// This side serves nothing: whatever comes in is an answer.
    only_calls: bool,
}

/// Sees every message as it is on the wire.
pub(crate) type Tap = Arc<dyn Fn(Direction, &[u8]) + Send + Sync>;

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From us.
    Sent,
    /// To us.
    Received,
}

type Answer = Result<RawJson, CallError>;
type Waiter = oneshot::Sender<Answer>;

struct State {
    session: Session<Waiter, Running>,
    outbox: Outbox,
    stop: Option<Stop>,
    ended: Option<Arc<str>>,
}

impl State {
    fn refused(&self, refused: Refused) -> CallError {
        match (refused, &self.ended) {
            (Refused::Closed, Some(reason)) => CallError::Closed(reason.clone()),
            (Refused::Closed, None) => CallError::closed("no answer can come any more"),
            (refused, _) => CallError::Refused(refused),
        }
    }
}

/// A request of the other side whose handler has become a task.
struct Running {
    context: Context,
    leash: Arc<Leash>,
}

/// Why a reader goes on although there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeedsReader {
    /// A call waits for an answer, which may be next.
    ForAnswers,
    /// A sender waits for room, which the other side may give only if we listen.
    ForRoom,
    /// It need not.
    No,
}

impl Shared {
    fn new(facts: Connection, limits: Arc<Limits>, tap: Option<Tap>, only_calls: bool) -> Self {
        let state = State {
            session: Session::new(limits.pending_calls),
            outbox: Outbox::new(limits.write_queue_bytes),
            stop: None,
            ended: None,
        };
        Self {
            state: Mutex::new(state),
            ordered_calls: AtomicUsize::new(0),
            ended: watch::Sender::new(None),
            facts: Arc::new(facts),
            limits,
            tap,
            only_calls,
        }
    }

    /// A panic while the lock is held leaves nothing half done: each holder makes one change.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let waker = self.state().outbox.take_waker();
        wake(waker);
    }

    /// Queues one message of our own.
    fn enqueue(&self, message: Outgoing) -> Result<(), CallError> {
        let mut state = self.state();
        if let Some(reason) = &state.ended {
            return Err(CallError::Closed(reason.clone()));
        }
        let waker = state.outbox.push(message);
        drop(state);
        wake(waker);
        Ok(())
    }

    /// Opens one call and queues it.
    fn open(
        &self,
        mut message: BytesMut,
        named: Option<Id>,
        waiter: Waiter,
    ) -> Result<Pending<'_>, CallError> {
        message.extend_from_slice(b",\"id\":");
        let mut state = self.state();
        let ids = match &named {
            Some(id) => {
                message.extend_from_slice(id.as_bytes());
                state.session.call_as(id.clone(), waiter).map(|()| 0..0)
            }
            None => state.session.call(waiter).map(|id| id..id + 1),
        };
        let ids = ids.map_err(|refused| state.refused(refused))?;
        if named.is_none() {
            encode_id(ids.start, &mut message);
        }
        message.put_u8(b'}');
        Ok(self.send_opened(state, message.freeze(), self.pending(ids, named)))
    }

    /// Opens the calls of a batch and queues it.
    fn open_batch(
        &self,
        entries: &[BatchEntry],
    ) -> Result<(Pending<'_>, Vec<oneshot::Receiver<Answer>>), CallError> {
        let calls = entries.iter().filter(|entry| matches!(entry, BatchEntry::Call(_))).count();
        let (waiters, answers): (Vec<_>, Vec<_>) = (0..calls).map(|_| oneshot::channel()).unzip();
        let mut state = self.state();
        let ids = state.session.batch(waiters).map_err(|refused| state.refused(refused))?;
        let message = encode_batch(entries, ids.clone());
        let pending = self.pending(ids, None);
        Ok((self.send_opened(state, message, pending), answers))
    }

    fn pending(&self, ids: Range<u64>, named: Option<Id>) -> Pending<'_> {
        let in_order = order::is_kept_by(self);
        if in_order {
            self.ordered_calls.fetch_add(1, Ordering::AcqRel);
        }
        Pending { shared: self, ids, named, in_order }
    }

    /// Queues the message of calls that were just opened, under the lock that opened them.
    fn send_opened<'a>(
        &'a self,
        mut state: MutexGuard<'_, State>,
        message: Bytes,
        pending: Pending<'a>,
    ) -> Pending<'a> {
        let waker = state.outbox.push(Outgoing::Own(message));
        drop(state);
        wake(waker);
        pending
    }

    /// Marks this thread as polling the handler of a notification of this connection.
    fn keep_order(&self) -> order::Kept {
        order::keep(self)
    }

    /// Ends the only exchange that waits, if there is just one.
    fn fail_only_exchange(&self, reason: &str) -> bool {
        let waiters = self.state().session.answer_only_exchange();
        let any = !waiters.is_empty();
        for waiter in waiters {
            let reason = format!("the answer cannot be read: {reason}");
            let _ = waiter.send(Err(CallError::Transport(reason)));
        }
        any
    }

    /// What keeps the reader going when there is no room.
    fn needs_reader(&self) -> NeedsReader {
        let state = self.state();
        if state.session.pending() > 0 {
            NeedsReader::ForAnswers
        } else if state.outbox.has_waiting_senders() {
            NeedsReader::ForRoom
        } else {
            NeedsReader::No
        }
    }

    /// Whether a call of ours waits for the other side.
    fn awaits_answers(&self) -> bool {
        self.state().session.pending() > 0
    }

    /// Gives an answer to whom it is for. An answer that nobody asked for is reported and ends there.
    fn answer(&self, response: Response) {
        let answered = self.state().session.answer(&response.id);
        match answered {
            Answered::Waiter(waiter) => {
                let _ = waiter.send(response.outcome.map_err(CallError::Rpc));
            }
            Answered::Late => tracing::debug!(id = %response.id, "an answer came too late"),
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
            tracing::warn!(id = %response.id, outcome = ?response.outcome, "an answer that nobody asked for");
        }
        for waiter in waiters {
            let _ = waiter.send(response.outcome.clone().map_err(CallError::Rpc));
        }
    }

    /// A response that is none: its call, if it names one, learns so; the connection goes on.
    fn answer_invalid(&self, invalid: &Invalid) {
        let reason = invalid.error.to_string();
        let answered = self.state().session.answer(&invalid.id);
        match answered {
            Answered::Waiter(waiter) => {
                let _ = waiter.send(Err(CallError::Protocol(reason)));
            }
            Answered::Late | Answered::Unknown => {
                tracing::warn!(id = %invalid.id, %reason, "an answer that is no valid Response");
            }
        }
    }

    /// Retires requests and queues their answer, in one step: a connection that is closing must not
    /// find neither.
    fn finish(&self, tickets: &[(Id, Ticket)], answer: Option<Bytes>) {
        let mut state = self.state();
        for (id, ticket) in tickets {
            state.session.finish(id, *ticket);
        }
        let waker = match answer {
            Some(answer) if state.ended.is_none() => state.outbox.push(Outgoing::Answer(answer)),
            _ => state.outbox.take_waker(),
        };
        drop(state);
        wake(waker);
    }

    /// Whether no request runs and no message waits.
    fn is_done(&self) -> bool {
        let state = self.state();
        state.session.is_idle() && state.outbox.is_empty()
    }

    /// Asks the connection to end; a later, sharper way replaces an earlier one.
    fn stop(&self, how: Stop) {
        let mut state = self.state();
        state.stop = state.stop.max(Some(how));
        drop(state);
        self.wake();
    }

    /// No answer can come any more: every call ends, and none can be made.
    fn end_calls(&self, reason: &Arc<str>) {
        let waiters = self.state().session.close_calls();
        for waiter in waiters {
            let _ = waiter.send(Err(CallError::Closed(reason.clone())));
        }
    }

    /// Tells every task to answer now.
    fn expire_running(&self) {
        let leashes: Vec<_> =
            self.state().session.all_running().map(|running| running.leash.clone()).collect();
        leashes.iter().for_each(|leash| leash.pull(Pull::Expire));
    }

    /// The connection is over: nothing is left waiting, running or queued.
    fn end(&self, reason: Arc<str>) {
        self.end_calls(&reason);
        let mut state = self.state();
        state.ended = Some(reason.clone());
        let running = state.session.close_running();
        let wakers = state.outbox.close();
        drop(state);
        for running in running {
            running.context.cancel();
            running.leash.pull(Pull::Abort);
        }
        wakers.into_iter().for_each(Waker::wake);
        self.ended.send_replace(Some(reason));
    }
}

fn encode_batch(entries: &[BatchEntry], mut ids: Range<u64>) -> Bytes {
    let mut out = BytesMut::with_capacity(entries.len() * 96);
    for entry in entries {
        out.put_u8(if out.is_empty() { b'[' } else { b',' });
        let (BatchEntry::Call(call) | BatchEntry::Notification(call)) = entry;
        encode::call_head(&call.method, call.params.as_ref(), &mut out);
        if let BatchEntry::Call(_) = entry
            && let Some(id) = ids.next()
        {
            out.extend_from_slice(b",\"id\":");
            encode_id(id, &mut out);
        }
        out.put_u8(b'}');
    }
    out.put_u8(b']');
    out.freeze()
}

fn encode_id(id: u64, out: &mut BytesMut) {
    // A `BytesMut` grows as needed, so writing to it cannot fail.
    let _ = write!(out, "{id}");
}
