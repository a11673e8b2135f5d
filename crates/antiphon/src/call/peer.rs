//! A handle to the peer of a connection.
//!
//! The handle does not depend on a transport. [`Link`] is the interface between a connection and its
//! handles, and the module `peer` implements it.

use std::fmt;
use std::sync::Arc;

use antiphon_core::{ErrorObject, Id, Params, RawJson};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Batch, BatchEntry, Call, CallError, Caller, Invocation, NamePrefix, ProgressWatch, Subscribe,
    Watch,
};
use crate::BoxFuture;
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::error::{CloseReason, SpawnError};
use crate::subscription::{FollowedSubscription, Follower, ServedSubscription, Topic};

/// A handle to the peer of a connection. Cheap to clone. It does not keep the connection open.
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
    link: Arc<dyn Link>,
}

/// The way in which a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// Refuse new requests, finish running handlers, send queued messages.
    Gracefully,
    /// Cancel running handlers.
    Now,
}

/// The interface of a connection to its handles.
pub(crate) trait Link: Send + Sync {
    fn connection(&self) -> &Connection;

    fn dialect(&self) -> Option<&Dialect>;

    /// Holds the reason once the connection has ended.
    fn ended(&self) -> &watch::Sender<Option<CloseReason>>;

    fn stop(&self, how: Stop);

    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>>;

    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>>;

    /// Watches progress with a new token, and returns the token.
    fn watch_progress(&self, watch: Watch) -> Result<Id, CallError>;

    fn unwatch_progress(&self, token: &Id);

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>>;

    /// Queues a notification. Does not wait for room in the write queue.
    fn post_now(&self, notification: &Invocation) -> Result<(), CallError>;

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>>;

    /// Sends a call and ignores its response. Does not wait for room in the write queue.
    fn send_and_forget(&self, call: &Invocation);

    /// Sends an encoded message when there is room in the write queue.
    fn send_encoded(&self, message: Bytes) -> BoxFuture<'_, Result<(), CallError>>;

    /// The maximum size of a reply, and of the notifications that follow it.
    fn response_bytes(&self) -> usize;

    /// Queues notifications behind a reply. They count as part of it, and so never wait for room.
    fn send_after_reply(&self, messages: Vec<Bytes>);

    /// Runs a task that ends with the connection.
    fn spawn(self: Arc<Self>, task: BoxFuture<'static, ()>) -> Result<(), SpawnError>;

    /// Sends an error that belongs to no request.
    fn send_error(&self, error: &ErrorObject);

    /// Subscribes. `gap` is the reason for missed items if this feed was subscribed before.
    fn follow(
        self: Arc<Self>,
        call: Invocation,
        feed: Arc<FollowedSubscription>,
        gap: Option<CloseReason>,
    ) -> BoxFuture<'static, Result<(), CallError>>;

    /// Registers one more served subscription. Fails at the limit of the connection.
    fn serve_subscription(
        self: Arc<Self>,
        topic: Arc<Topic>,
        over: CancellationToken,
    ) -> Result<Arc<ServedSubscription>, ErrorObject>;

    /// Ends a served subscription. Returns false if there is none with this id.
    fn end_subscription(&self, id: &Id) -> bool;

    /// Cancels the requests with this id whose handlers run as tasks.
    fn cancel_running(&self, id: &Id);

    /// Handles a notification that has a special meaning on this connection.
    fn intercept(&self, notification: &Invocation) -> Intercepted;
}

/// The result of [`Link::intercept`].
pub(crate) enum Intercepted {
    /// The notification is for the handler.
    No,
    /// It reported progress, which was delivered.
    Progress,
    /// It is an item of a subscription: the future delivers it.
    Item(Arc<FollowedSubscription>, BoxFuture<'static, ()>),
}

impl Peer {
    pub(crate) fn new(link: Arc<dyn Link>) -> Self {
        Self { link }
    }

    /// Calls a method of the peer. The call is sent when it is awaited. Dropping it abandons the call.
    pub fn call<R>(&self, method: &str, params: impl Serialize) -> Call<R> {
        Call::new(Arc::new(self.clone()), method, &params, None)
    }

    /// Sends a notification to the peer. Waits while the write queue is full.
    ///
    /// # Cancel safety
    /// A notification whose future is dropped was not sent.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        let params = Params::encode(&params).map_err(CallError::Encode)?;
        self.post(Invocation::new(method, params)).await
    }

    /// Queues a notification without waiting, even if the write queue is full.
    ///
    /// Use this only in destructors, which cannot wait. Everywhere else, use [`notify`](Self::notify), which waits for
    /// room in the queue.
    ///
    /// The notification counts as a reply: if the peer does not read, and replies with a total of
    /// [`Limits::write_queue_bytes`](crate::Limits::write_queue_bytes) are queued, its further messages are not
    /// handled.
    ///
    /// # Errors
    /// Fails if the params cannot be encoded or the connection has ended.
    ///
    /// ```
    /// use antiphon::Peer;
    ///
    /// struct Indexing(Peer);
    ///
    /// impl Drop for Indexing {
    ///     fn drop(&mut self) {
    ///         // Fails only if the connection has ended.
    ///         let _ = self.0.notify_now("indexed", ());
    ///     }
    /// }
    /// ```
    pub fn notify_now(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        let params = Params::encode(&params).map_err(CallError::Encode)?;
        self.link.post_now(&Invocation::new(method, params))
    }

    /// Creates a token, and calls a function with each progress report that has this token.
    ///
    /// Use it if a call has more than one token, or if progress does not belong to a call. Otherwise use
    /// [`Call::with_progress`](crate::Call::with_progress).
    ///
    /// The function runs as soon as a report is read from the connection: it does not wait for the handlers of
    /// earlier notifications, and it runs before any later response is delivered. It must not block.
    ///
    /// # Errors
    /// Fails if the [`Dialect`] of this side does not define progress.
    ///
    /// ```
    /// use antiphon::{CallError, Peer};
    /// use serde_json::json;
    ///
    /// async fn symbols(peer: &Peer) -> Result<serde_json::Value, CallError> {
    ///     let parts = peer.watch_progress(|part| println!("{part}"))?;
    ///     let token: serde_json::Value = serde_json::from_str(parts.token().as_str()).unwrap_or_default();
    ///     peer.call("workspace/symbol", json!({"query": "", "partialResultToken": token})).await
    /// }
    /// ```
    pub fn watch_progress(
        &self,
        receive: impl Fn(RawJson) + Send + Sync + 'static,
    ) -> Result<ProgressWatch, CallError> {
        let token = self.link.watch_progress(Watch::passing(receive))?;
        Ok(ProgressWatch { link: self.link.clone(), token })
    }

    /// Subscribes to a topic of the peer. The request is sent when it is awaited.
    pub fn subscribe<T>(&self, topic: impl Into<Topic>, params: impl Serialize) -> Subscribe<T> {
        Subscribe::new(Arc::new(self.clone()), topic.into(), &params, None)
    }

    /// Starts a batch.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::new(self.clone()), None, NamePrefix::default())
    }

    /// The transport, the remote address and the other properties of the connection.
    pub fn connection(&self) -> &Connection {
        self.link.connection()
    }

    /// Waits for running handlers, sends queued messages, and closes the connection. Returns when it is
    /// closed.
    ///
    /// Handlers have [`Limits::shutdown_timeout`](crate::Limits::shutdown_timeout) to finish, and are cancelled
    /// after it. A handler that awaits this on its own connection waits for itself, so it is cancelled: call
    /// it in a task of `tokio::spawn` instead.
    ///
    /// # Cancel safety
    /// Once the future was polled, the connection closes even if the future is dropped.
    pub async fn close(&self) {
        self.link.stop(Stop::Gracefully);
        self.closed().await;
    }

    /// Waits until the connection has ended. Returns the reason.
    pub async fn closed(&self) -> CloseReason {
        let mut ended = self.link.ended().subscribe();
        let reason = ended.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or(CloseReason::ByUs)
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.link.ended().borrow().is_some()
    }

    pub(crate) fn link(&self) -> &Arc<dyn Link> {
        &self.link
    }

    /// Whether both are handles to the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.link), Arc::as_ptr(&other.link))
    }

    pub(crate) fn stop(&self, how: Stop) {
        self.link.stop(how);
    }
}

impl Caller for Peer {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        self.link.send(call)
    }

    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        self.link.send_watched(call, watch)
    }

    fn subscribe(
        &self,
        call: Invocation,
        follower: Follower,
    ) -> BoxFuture<'_, Result<(), CallError>> {
        self.link.clone().follow(call, follower.into_feed(), None)
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        self.link.post(notification)
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        self.link.send_batch(entries)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(self.connection()).finish()
    }
}
