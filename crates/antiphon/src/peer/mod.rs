//! One connection, both directions.
//!
//! A [`Peer`] is a handle to the other side; the connection itself is one future that reads,
//! dispatches and writes (`connection.rs`). What both share stands in `shared.rs`.

mod admission;
pub(crate) mod answers;
mod backlog;
mod calls;
pub(crate) mod caught;
mod connection;
pub(crate) mod dispatcher;
mod ending;
mod gate;
mod leash;
mod order;
mod places;
mod progress;
mod reader;
mod run;
mod served;
mod shared;
mod subscriptions;
mod watchdog;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use antiphon_core::{ErrorObject, Id, Params, RawJson, encode};
use bytes::BytesMut;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::BoxFuture;
use crate::call::{Batch, BatchEntry, Call, CallError, Caller, Invocation};
use crate::context::Connection;
use crate::subscription::{Follower, Subscribe, Topic};

pub(crate) use caught::Caught;
pub(crate) use connection::{AtEnd, Side, Wire, connect};
pub(crate) use ending::ENDED_WELL;
pub use progress::Watch;
use shared::Waiter;
pub(crate) use shared::{Shared, Stop};
pub(crate) use watchdog::Meter;
use writer::Outgoing;

/// A handle to the other side of a connection. Cheap to clone; it does not keep the connection open.
///
/// ```
/// # use antiphon::{CallError, Context, Router};
/// let router = Router::new().method("greet", |(): (), cx: Context| async move {
///     let name: String = cx.peer()?.call("your_name", ()).await?;
///     Ok(format!("hello, {name}"))
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

    /// Subscribes to a topic of the other side; asked for when awaited.
    pub fn subscribe<T>(&self, topic: impl Into<Topic>, params: impl Serialize) -> Subscribe<T> {
        Subscribe::new(Arc::new(self.clone()), topic.into(), &params, None)
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

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.shared.ended.borrow().is_some()
    }

    /// Whether it is a handle to the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(crate) fn facts(&self) -> &Connection {
        &self.shared.facts
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
            if state.outbox.poll_capacity(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            // One that has to wait keeps the connection reading, which is to see it.
            self.shared.ring(state);
            Poll::Pending
        })
        .await
    }
}

impl Caller for Peer {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(async move {
            self.capacity().await?;
            let (waiter, answer) = oneshot::channel();
            let pending = self.shared.open(&call, Waiter::Call(waiter))?;
            let answer = answer.await;
            pending.answered();
            answer.unwrap_or_else(|_| Err(CallError::Interrupted(DROPPED.into())))
        })
    }

    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(Peer::send_watched(self, call, watch))
    }

    fn subscribe(
        &self,
        call: Invocation,
        follower: Follower,
    ) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(self.ask(call, follower.0, None))
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            self.capacity().await?;
            self.shared.post(&notification)
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
                    answer.await.unwrap_or_else(|_| Err(CallError::Interrupted(DROPPED.into()))),
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

/// Why there is no answer, where nobody has said.
const DROPPED: &str = "it was dropped";

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
