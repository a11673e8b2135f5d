//! Outgoing calls.
//!
//! A [`Caller`] sends calls, for example a [`Peer`] or an HTTP client. [`Call`] and [`Batch`]
//! add types. [`CallError`] distinguishes an error response of the peer from a local failure.

mod batch;
pub(crate) mod deadline;
pub(crate) mod exchange;
mod name_prefix;
mod peer;
mod progress;
mod subscription;
mod typed;

use antiphon_core::RawJson;

use crate::BoxFuture;
use crate::subscription::Follower;

pub use batch::{Batch, Replies, Slot};
pub(crate) use deadline::within;
pub(crate) use name_prefix::NamePrefix;
pub use peer::Peer;
pub(crate) use peer::{Intercepted, Link, Stop};
pub use progress::{Progress, ProgressWatch, Watch};
pub use subscription::{Subscribe, Subscription, SubscriptionError};
pub use typed::Call;

pub(crate) use crate::error::CallError;
pub(crate) use crate::invocation::Invocation;

/// One entry of an outgoing batch. The caller picks its id.
///
/// [`Batch`] builds the entries of a client. A [`Caller`] receives them:
///
/// ```
/// use antiphon::{BatchEntry, Invocation};
///
/// let ping = BatchEntry::Call(Invocation::new("ping", None));
/// let update = BatchEntry::Notification(Invocation::new("update", None));
/// # drop((ping, update));
/// ```
#[derive(Clone, Debug)]
pub enum BatchEntry {
    /// A call, which gets a response.
    Call(Invocation),
    /// A notification, which gets no response.
    Notification(Invocation),
}

/// Sends calls, notifications and batches to a peer.
///
/// A [`Client`](crate::Client) works over any caller. A caller that wraps another one must forward
/// [`send_watched`](Self::send_watched) and [`subscribe`](Self::subscribe) too: by default, calls with
/// progress and subscriptions fail. This one counts the calls that it forwards:
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use antiphon::{
///     BatchEntry, BoxFuture, CallError, Caller, Client, Follower, Invocation, Peer, RawJson, Watch,
/// };
///
/// struct Counting { peer: Peer, calls: AtomicUsize }
///
/// impl Caller for Counting {
///     fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.peer.send(call)
///     }
///
///     fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
///         self.peer.post(notification)
///     }
///
///     fn send_batch(
///         &self,
///         entries: Vec<BatchEntry>,
///     ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
///         self.peer.send_batch(entries)
///     }
///
///     fn send_watched(
///         &self,
///         call: Invocation,
///         watch: Watch,
///     ) -> BoxFuture<'_, Result<RawJson, CallError>> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.peer.send_watched(call, watch)
///     }
///
///     fn subscribe(
///         &self,
///         call: Invocation,
///         follower: Follower,
///     ) -> BoxFuture<'_, Result<(), CallError>> {
///         Caller::subscribe(&self.peer, call, follower)
///     }
/// }
///
/// fn counting(peer: Peer) -> Client {
///     let caller: Arc<dyn Caller> = Arc::new(Counting { peer, calls: AtomicUsize::new(0) });
///     Client::from(caller)
/// }
/// ```
pub trait Caller: Send + Sync + 'static {
    /// Sends a call and waits for its result. Dropping the future abandons the call.
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>>;

    /// Sends a notification. Returns when the message is queued or sent.
    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>>;

    /// Like [`send`](Self::send), and reports the progress of the call. The default fails with
    /// [`CallError::CannotCallBack`]; a wrapper must forward it.
    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        drop((call, watch));
        Box::pin(std::future::ready(Err(CallError::CannotCallBack("this transport"))))
    }

    /// Subscribes and waits for the reply. The items go to the follower until it is dropped. The default
    /// fails with [`CallError::CannotCallBack`]; a wrapper must forward it.
    fn subscribe(
        &self,
        call: Invocation,
        follower: Follower,
    ) -> BoxFuture<'_, Result<(), CallError>> {
        drop((call, follower));
        Box::pin(std::future::ready(Err(CallError::CannotCallBack("this transport"))))
    }

    /// Sends a batch and waits for all its results: one for each `BatchEntry::Call`, in order.
    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>>;
}
