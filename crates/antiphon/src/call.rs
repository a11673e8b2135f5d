//! How one side calls the other.
//!
//! [`Caller`] is what can be called: a [`Peer`](crate::Peer), an HTTP server. [`Call`] and [`Batch`]
//! put types on it. An error that the other side answered with and a failure of our own never look
//! alike: see [`CallError`].

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{
    ErrorObject, Id, Invalid, Method, Params, ParamsError, RawJson, Refused, TraceContext, encode,
};
use bytes::BytesMut;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::BoxFuture;
use crate::layer::{BoxError, trace};
use crate::peer::Watch;
use crate::progress::{Patience, Progress};
use crate::subscription::Follower;

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

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The other side answered with an error.
    #[error("{0}")]
    Rpc(ErrorObject),
    /// The connection is gone, and the call was not sent.
    #[error("the connection is closed: {0}")]
    Closed(Arc<str>),
    /// The connection was lost while the call was under way.
    #[error("the connection ended before the answer came: {0}; what was asked may have been done")]
    Interrupted(Arc<str>),
    /// No answer came in time.
    #[error("no answer within {0:?}; raise the timeout or see what keeps the other side busy")]
    TimedOut(Duration),
    /// The params cannot be sent.
    #[error("the params cannot be sent")]
    Encode(#[source] ParamsError),
    /// The result is not of the type asked for.
    #[error("the result of `{method}` is not what was asked for")]
    Decode {
        /// The method that was called.
        method: String,
        /// What did not fit.
        source: serde_json::Error,
    },
    /// The other side broke the protocol.
    #[error("the other side broke the protocol: {0}")]
    Protocol(String),
    /// This transport has no way back to the caller.
    #[error("{0} cannot call back; connect by WebSocket or a stream")]
    NoWayBack(&'static str),
    /// What carries the calls failed, or answered something that is not JSON-RPC.
    #[error("{0}")]
    Transport(String),
    /// What was asked for is not to be had here.
    #[error("this connection has no {0}")]
    Unsupported(&'static str),
    /// Too many calls wait already.
    #[error(transparent)]
    Refused(Refused),
    /// This transport has no headers to send with a call.
    #[error("{0} sends no headers with a call; set them before connecting, or call by HTTP")]
    NoHeaders(&'static str),
    /// A layer of our own ended the call.
    #[error("a layer ended the call: {0}")]
    Layer(#[source] BoxError),
}

impl CallError {
    /// An answer that could not be read: over a limit of ours, or no JSON-RPC.
    pub(crate) fn unreadable(invalid: &Invalid) -> Self {
        let reason = invalid.error.to_string();
        if invalid.is_over_limit() {
            Self::Transport(format!("the answer is over a limit of ours; raise it: {reason}"))
        } else {
            Self::Protocol(reason)
        }
    }

    /// The same for each call of a batch that failed as a whole.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Rpc(error) => Self::Rpc(error.clone()),
            Self::Closed(reason) => Self::Closed(reason.clone()),
            Self::Interrupted(reason) => Self::Interrupted(reason.clone()),
            Self::TimedOut(limit) => Self::TimedOut(*limit),
            Self::Protocol(reason) => Self::Protocol(reason.clone()),
            Self::NoWayBack(transport) => Self::NoWayBack(transport),
            Self::NoHeaders(transport) => Self::NoHeaders(transport),
            Self::Refused(refused) => Self::Refused(*refused),
            other => Self::Transport(other.to_string()),
        }
    }

    pub(crate) fn closed(reason: impl Into<Arc<str>>) -> Self {
        Self::Closed(reason.into())
    }
}

impl From<ErrorObject> for CallError {
    fn from(error: ErrorObject) -> Self {
        Self::Rpc(error)
    }
}

/// For `?` in a handler: the other side's error is passed on as it came. Our own becomes -32603 and
/// goes to the log: it may name addresses that the caller should not see.
impl From<CallError> for ErrorObject {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Rpc(error) => error,
            CallError::NoWayBack(_) => Self::internal_error().with_data(&error.to_string()),
            own => {
                tracing::warn!(error = %own, "a call that a handler made failed");
                Self::internal_error()
            }
        }
    }
}

/// A typed call that is sent when it is awaited.
///
/// Dropping it, or the future made from it, abandons the call.
#[must_use = "a call is sent when it is awaited"]
pub struct Call<R> {
    caller: Arc<dyn Caller>,
    invocation: Result<Invocation, ParamsError>,
    patience: Patience,
    watch: Option<Watch>,
    result: PhantomData<fn() -> R>,
}

impl<R> Call<R> {
    pub(crate) fn new(
        caller: Arc<dyn Caller>,
        method: &str,
        params: &(impl Serialize + ?Sized),
        timeout: Option<Duration>,
    ) -> Self {
        let invocation = Params::encode(params).map(|params| Invocation::new(method, params));
        let patience = Patience { timeout, ..Patience::default() };
        Self { caller, invocation, patience, watch: None, result: PhantomData }
    }

    /// Gives up after this time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.patience.timeout = Some(timeout);
        self
    }

    /// Lets the timeout begin anew with each progress that is told, up to this time in all. The
    /// connection needs a [`Dialect`](crate::Dialect) with progress.
    pub fn extend_on_progress(mut self, at_most: Duration) -> Self {
        self.patience.cap = Some(at_most);
        self.watch.get_or_insert_with(|| Watch::new(None));
        self
    }

    /// The call, and how far it comes as a stream beside it. Progress that nobody takes is dropped, and
    /// holds up nothing. The connection needs a [`Dialect`](crate::Dialect) with progress.
    ///
    /// ```
    /// # use antiphon::{Client, Context, Dialect, Router};
    /// # use antiphon::transport::memory::pair;
    /// use futures_util::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (ours, theirs) = pair();
    /// let router = Router::new().method("index", |_: serde_json::Value, cx: Context| async move {
    ///     cx.progress("half done").await?;
    ///     Ok("done")
    /// });
    /// # let _server = Client::builder().dialect(Dialect::lsp()).handler(router).over(theirs);
    /// # let client = Client::builder().dialect(Dialect::lsp()).over(ours);
    /// let (call, mut progress) = client.call::<String>("index", ()).with_progress::<String>();
    /// let (result, seen) = tokio::join!(call, progress.next());
    /// assert_eq!((result?.as_str(), seen.unwrap()?.as_str()), ("done", "half done"));
    /// # Ok(()) }
    /// ```
    pub fn with_progress<P>(mut self) -> (Self, Progress<P>) {
        let (watch, progress) = Progress::watch();
        self.watch = Some(watch);
        (self, progress)
    }

    /// Sends a header with this call, in place of one of that name that the client has. Only HTTP has
    /// any: elsewhere the call fails with [`CallError::NoHeaders`].
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if let Ok(invocation) = &mut self.invocation {
            invocation.headers_mut().append(name, value);
        }
        self
    }

    /// Calls with this id in place of one of our own.
    pub fn id(mut self, id: Id) -> Self {
        if let Ok(invocation) = &mut self.invocation {
            invocation.id = Some(id);
        }
        self
    }
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("invocation", &self.invocation).finish_non_exhaustive()
    }
}

impl<R: DeserializeOwned + 'static> IntoFuture for Call<R> {
    type Output = Result<R, CallError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let invocation = self.invocation.map_err(CallError::Encode)?;
            let method = invocation.method.clone();
            let result = match self.watch {
                None => within(self.patience.timeout, self.caller.send(invocation)).await?,
                Some(watch) => {
                    let call = self.caller.send_watched(invocation, watch.clone());
                    self.patience.wait(call, &watch).await?
                }
            };
            typed(&method, result)
        })
    }
}

/// Several calls and notifications in one message, each call with a result type of its own.
///
/// ```
/// # async fn example(client: antiphon::Client) -> Result<(), antiphon::CallError> {
/// let mut batch = client.batch();
/// let sum = batch.call::<i64>("sum", [1, 2, 4]);
/// let data = batch.call::<(String, i64)>("get_data", ());
/// batch.notify("update", [1, 2, 3]);
/// let mut replies = batch.send().await?;
/// assert_eq!(replies.take(sum)?, 7);
/// assert_eq!(replies.take(data)?.0, "hello");
/// # Ok(()) }
/// ```
#[must_use = "a batch is sent by `send`"]
pub struct Batch {
    caller: Arc<dyn Caller>,
    entries: Vec<BatchEntry>,
    methods: Vec<Method>,
    fault: Option<ParamsError>,
    headers: HeaderMap,
    timeout: Option<Duration>,
}

/// The place of one call in a batch, and the type of its result.
#[derive(Debug)]
pub struct Slot<R>(usize, PhantomData<fn() -> R>);

/// What came back for a batch.
#[derive(Debug)]
pub struct Replies {
    results: Vec<Option<Result<RawJson, CallError>>>,
    methods: Vec<Method>,
}

impl Batch {
    pub(crate) fn new(caller: Arc<dyn Caller>, timeout: Option<Duration>) -> Self {
        let (entries, methods, headers) = (Vec::new(), Vec::new(), HeaderMap::new());
        Self { caller, entries, methods, fault: None, headers, timeout }
    }

    /// Adds a call. The slot finds its result in the [`Replies`].
    pub fn call<R>(&mut self, method: &str, params: impl Serialize) -> Slot<R> {
        let slot = Slot(self.methods.len(), PhantomData);
        self.methods.push(Method::new(method));
        self.add(method, &params, BatchEntry::Call);
        slot
    }

    /// Adds a notification.
    pub fn notify(&mut self, method: &str, params: impl Serialize) {
        self.add(method, &params, BatchEntry::Notification);
    }

    /// Adds a call that is made already, as a typed client makes it. Whom it would have called, its
    /// timeout and its id do not count: it goes where the batch goes.
    pub fn push<R>(&mut self, call: Call<R>) -> Slot<R> {
        let slot = Slot(self.methods.len(), PhantomData);
        match call.invocation {
            Ok(invocation) => {
                self.methods.push(invocation.method.clone());
                self.entries.push(BatchEntry::Call(Invocation { id: None, ..invocation }));
            }
            Err(fault) => self.fault = self.fault.take().or(Some(fault)),
        }
        slot
    }

    /// Sends a header with the batch, in place of one of that name that the client has. Only HTTP has
    /// any: elsewhere the batch fails with [`CallError::NoHeaders`].
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Gives up on the whole after this time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends the batch and waits for all its results. An empty one is not sent.
    pub async fn send(mut self) -> Result<Replies, CallError> {
        if let Some(fault) = self.fault {
            return Err(CallError::Encode(fault));
        }
        if !self.headers.is_empty() {
            // Each carries them, whichever of them a layer lets through.
            for entry in &mut self.entries {
                let (BatchEntry::Call(call) | BatchEntry::Notification(call)) = entry;
                call.headers_mut().extend(self.headers.clone());
            }
        }
        let results = if self.entries.is_empty() {
            Vec::new()
        } else {
            within(self.timeout, self.caller.send_batch(self.entries)).await?
        };
        Ok(Replies { results: results.into_iter().map(Some).collect(), methods: self.methods })
    }

    fn add(&mut self, method: &str, params: &impl Serialize, entry: fn(Invocation) -> BatchEntry) {
        match Params::encode(params) {
            Ok(params) => self.entries.push(entry(Invocation::new(method, params))),
            Err(fault) => self.fault = self.fault.take().or(Some(fault)),
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Replies {
    /// Takes the result of one call. A slot of another batch finds nothing.
    #[expect(clippy::needless_pass_by_value, reason = "a slot is spent")]
    pub fn take<R: DeserializeOwned + 'static>(&mut self, slot: Slot<R>) -> Result<R, CallError> {
        let taken = self.results.get_mut(slot.0).and_then(Option::take);
        match (taken, self.methods.get(slot.0)) {
            (Some(result), Some(method)) => typed(method, result?),
            _ => Err(CallError::Protocol("there is no such slot in this batch".to_owned())),
        }
    }
}

fn typed<R: DeserializeOwned + 'static>(method: &Method, result: RawJson) -> Result<R, CallError> {
    crate::raw::same_type(result).or_else(|result| {
        result
            .decode()
            .map_err(|source| CallError::Decode { method: method.as_str().to_owned(), source })
    })
}

pub(crate) async fn within<T>(
    timeout: Option<Duration>,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    match timeout {
        None => call.await,
        Some(limit) => {
            tokio::time::timeout(limit, call).await.unwrap_or(Err(CallError::TimedOut(limit)))
        }
    }
}
