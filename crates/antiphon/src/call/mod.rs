//! How one side calls the other.
//!
//! [`Caller`] is what can be called: a [`Peer`](crate::Peer), an HTTP server. [`Call`] and [`Batch`]
//! put types on it. An error that the other side answered with and a failure of our own never look
//! alike: see [`CallError`].

mod batch;
pub(crate) mod exchange;
mod peer;
mod progress;
mod subscription;
mod typed;

use antiphon_core::{Id, Method, Params, RawJson, TraceContext, encode};
use bytes::BytesMut;
use http::{Extensions, HeaderMap};

use crate::BoxFuture;
use crate::subscription::Follower;
use crate::trace;

pub use batch::{Batch, Replies, Slot};
pub use peer::Peer;
pub(crate) use peer::{Intercepted, Link, Stop};
pub use progress::{Progress, Watch};
pub(crate) use subscription::unsubscribe_call;
pub use subscription::{Subscribe, Subscription, SubscriptionError};
pub use typed::Call;
pub(crate) use typed::within;

pub(crate) use crate::error::CallError;

/// A method and its params, on their way in or out.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// What to do.
    pub method: Method,
    /// With what.
    pub params: Option<Params>,
    /// The id to call with; a caller picks one where there is none.
    pub id: Option<Id>,
    /// What goes along with it, for layers and for what carries it.
    pub extensions: Extensions,
}

impl Invocation {
    /// A call or notification to be sent, in the trace of the call that is being served, if one is
    /// ([`Trace`](crate::layer::Trace)).
    pub fn new(method: &str, params: Option<Params>) -> Self {
        let mut call = Self::of(Method::new(method), params);
        if let Some(trace) = trace::current() {
            call.extensions.insert(trace);
        }
        call
    }

    /// What is called, with what, and nothing else.
    #[inline(always)]
    pub fn of(method: Method, params: Option<Params>) -> Self {
        Self { method, params, id: None, extensions: Extensions::new() }
    }

    /// What came, and where it says that it stands in a trace.
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

    /// Where it stands in a trace.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.extensions.get()
    }

    /// The headers to send it with, beside those of the client; only HTTP has any.
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.extensions.get()
    }

    /// The same, to be changed.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        self.extensions.get_or_insert_default()
    }

    /// Appends everything of it but the id and the closing brace.
    pub(crate) fn encode_head(&self, out: &mut BytesMut) {
        encode::call_head(&self.method, self.params.as_ref(), out);
        if let Some(trace) = self.trace() {
            trace.encode(out);
        }
    }

    /// What it takes on the wire, and a little more.
    pub(crate) fn about_len(&self) -> usize {
        let params = self.params.as_ref().map_or(0, |params| params.as_json().as_bytes().len());
        let id = self.id.as_ref().map_or(20, |id| id.as_bytes().len());
        64 + self.method.as_json().as_bytes().len() + params + id
    }
}

/// One entry of a batch to be sent. Its id is always the caller's own.
#[derive(Clone, Debug)]
pub enum BatchEntry {
    /// Wants an answer.
    Call(Invocation),
    /// Wants none.
    Notification(Invocation),
}

/// Anything that can be called.
pub trait Caller: Send + Sync + 'static {
    /// Calls and waits for the result. Dropping the future abandons the call.
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>>;

    /// Notifies; it is done when the message is on its way.
    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>>;

    /// Calls, waits for the result, and hears on the way how far the call has come. What cannot be
    /// called back hears nothing.
    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        drop((call, watch));
        Box::pin(std::future::ready(Err(CallError::NoWayBack("this transport"))))
    }

    /// Asks for a subscription and waits for the reply; its items go to the follower until it is
    /// dropped. What cannot be called back has none.
    fn subscribe(
        &self,
        call: Invocation,
        follower: Follower,
    ) -> BoxFuture<'_, Result<(), CallError>> {
        drop((call, follower));
        Box::pin(std::future::ready(Err(CallError::NoWayBack("this transport"))))
    }

    /// Sends one batch and waits for all its results, one for each `BatchEntry::Call`, in order.
    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>>;
}
