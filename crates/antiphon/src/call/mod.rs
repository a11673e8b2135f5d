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

use antiphon_core::{Id, Method, Params, RawJson, TraceContext, encode};
use bytes::BytesMut;
use http::{Extensions, HeaderMap};

use crate::BoxFuture;
use crate::current_trace;
use crate::subscription::Follower;

pub use batch::{Batch, Replies, Slot};
pub(crate) use deadline::within;
pub(crate) use name_prefix::NamePrefix;
pub use peer::Peer;
pub(crate) use peer::{Intercepted, Link, Stop};
pub use progress::{Progress, Watch};
pub(crate) use subscription::unsubscribe_call;
pub use subscription::{Subscribe, Subscription, SubscriptionError};
pub use typed::Call;

pub(crate) use crate::error::CallError;

/// The method and the params of an incoming or outgoing call.
///
/// ```
/// use antiphon::{Invocation, Params};
///
/// let params = Params::encode(&[1, 2, 4])?;
/// let call = Invocation::new("sum", params);
/// assert_eq!(call.method.as_str(), "sum");
/// # Ok::<(), antiphon::ParamsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The method.
    pub method: Method,
    /// The params.
    pub params: Option<Params>,
    /// The id of an outgoing request. Without one, the caller picks an id.
    pub id: Option<Id>,
    /// Further values, for layers and for the transport.
    pub extensions: Extensions,
}

impl Invocation {
    /// Creates an outgoing call or notification. In a handler with the layer
    /// [`Trace`](crate::layer::Trace), it continues the trace of the handled call.
    pub fn new(method: &str, params: Option<Params>) -> Self {
        let mut call = Self::of(Method::new(method), params);
        if let Some(trace) = current_trace::current() {
            call.extensions.insert(trace);
        }
        call
    }

    /// Creates a call with these params, without an id and without extensions.
    #[inline(always)]
    pub fn of(method: Method, params: Option<Params>) -> Self {
        Self { method, params, id: None, extensions: Extensions::new() }
    }

    /// Creates an incoming call, with the trace context of its message.
    #[inline(always)]
    pub(crate) fn received(
        method: Method,
        params: Option<Params>,
        trace: Option<Box<TraceContext>>,
    ) -> Self {
        let mut call = Self::of(method, params);
        if let Some(trace) = trace {
            call.extensions.insert(*trace);
        }
        call
    }

    /// The trace context.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.extensions.get()
    }

    /// The headers of this call, in addition to those of the client. Only HTTP sends them.
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.extensions.get()
    }

    /// The headers of this call, mutably.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        self.extensions.get_or_insert_default()
    }

    /// Encodes the call, except for the id and the closing brace.
    pub(crate) fn encode_head(&self, out: &mut BytesMut) {
        encode::call_head(&self.method, self.params.as_ref(), out);
        if let Some(trace) = self.trace() {
            trace.encode(out);
        }
    }

    /// An upper estimate of the encoded length.
    pub(crate) fn about_len(&self) -> usize {
        let params = self.params.as_ref().map_or(0, |params| params.as_json().as_bytes().len());
        let id = self.id.as_ref().map_or(20, |id| id.as_bytes().len());
        64 + self.method.as_json().as_bytes().len() + params + id
    }
}

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
