//! Where a call stands among all that its cause has set going: a span of `tracing` for each, and W3C
//! Trace Context across the wires.
//!
//! What comes tells its parent by HTTP headers, or by members of the message, which come first. What
//! goes out is told the same way: a single call over HTTP by headers, anything else by members. A
//! context that is not well-formed is none, and begins a new trace.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::{RawJson, TraceContext};
use http::{HeaderMap, HeaderName, HeaderValue};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;
use tracing::field::{Empty, display};

use super::pass::Passing;
use super::passage::Passage;
use super::{BoxError, Wrapped, always_ready};
use crate::context::Context;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// A span for each call, in the trace that it belongs to.
///
/// A handler finds it by [`Context::trace`], and what it calls goes on in it: by any client of this
/// crate, and by the peer that called. The span is named `rpc`, at the level `info`, with the fields
/// `method`, `id`, `transport`, `remote`, `trace_id`, `span_id`, `parent_id`, and `code` where the call
/// ends with an error. What a handler spawns is in it if it is [`carry`]ed.
///
/// Around the calls of a client it makes a span of each, and a trace where there is none.
///
/// ```
/// use antiphon::layer::Trace;
/// use antiphon::{Context, Handler, Responder, Router};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let router = Router::new().method("trace", |(): (), cx: Context| async move {
///     Ok(cx.trace().map(|trace| trace.trace_id().to_string()))
/// });
/// let responder = Responder::new(router.layer(Trace::new()));
/// let call = r#"{"jsonrpc":"2.0","method":"trace","id":1,
///     "traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#;
/// let answer = responder.answer(call).await.unwrap();
/// assert_eq!(answer, r#"{"jsonrpc":"2.0","result":"0af7651916cd43dd8448eb211c80319c","id":1}"#);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace(());

impl Trace {
    /// Goes on with the traces that come, and begins one where none does.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Context {
    /// Where this call stands in its trace, if [`Trace`] looks after it.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.get()
    }
}

impl<S> Layer<S> for Trace {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { policy: *self, inner }
    }
}

impl<S, R> Service<R> for Wrapped<Trace, S>
where
    S: Service<R, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Response = RawJson;
    type Error = R::Error;
    type Future = Traced<S, R>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), R::Error>> {
        always_ready(poller)
    }

    fn call(&mut self, mut request: R) -> Self::Future {
        let told = request.call().trace().cloned();
        let parent = told.or_else(|| request.context().and_then(by_headers));
        let trace = next(parent.as_ref());
        let span = span(&request, &trace, parent.as_ref());
        request.call_mut().extensions.insert(trace.clone());
        let request = request.in_trace(&trace);
        let entered = Entered::new(&span, &trace);
        let passage = Passage::enter(&mut self.inner, request);
        drop(entered);
        Traced { carried: Carried { future: passage, span, trace: Some(trace) } }
    }
}

/// The parent that an HTTP request tells. The one that became a WebSocket is long over.
fn by_headers(cx: &Context) -> Option<TraceContext> {
    if cx.peer().is_ok() {
        return None;
    }
    let headers = cx.connection().headers();
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let trace = TraceContext::parse(parent.to_str().ok()?.trim())?;
    let states: Vec<_> =
        headers.get_all(TRACESTATE).iter().filter_map(|state| state.to_str().ok()).collect();
    Some(if states.is_empty() { trace } else { trace.with_state(&states.join(",")) })
}

/// Tells an HTTP request's place in a trace.
#[cfg(feature = "http")]
pub(crate) fn write_headers(trace: &TraceContext, headers: &mut HeaderMap) {
    if let Ok(parent) = HeaderValue::from_str(&trace.to_string()) {
        headers.insert(TRACEPARENT, parent);
    }
    if let Some(Ok(state)) = trace.state().map(HeaderValue::from_str) {
        headers.insert(TRACESTATE, state);
    }
}

fn span<R: Passing>(request: &R, trace: &TraceContext, parent: Option<&TraceContext>) -> Span {
    let span = tracing::info_span!(
        "rpc",
        method = Empty,
        id = Empty,
        transport = Empty,
        remote = Empty,
        trace_id = Empty,
        span_id = Empty,
        parent_id = Empty,
        code = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    span.record("method", short(request.call().method.as_str()));
    span.record("trace_id", display(trace.trace_id()));
    span.record("span_id", display(trace.span_id()));
    if let Some(parent) = parent {
        span.record("parent_id", display(parent.span_id()));
    }
    if let Some(cx) = request.context() {
        span.record("transport", cx.connection().transport);
        if let Some(id) = cx.id() {
            span.record("id", display(short(id.as_str())));
        }
        if let Some(remote) = cx.connection().remote {
            span.record("remote", display(remote));
        }
    }
    span
}

/// What a caller may write to the log: one line, and not a long one.
pub(crate) fn short(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).take(64).collect()
}

/// The next span of a trace, or the first of a new one.
fn next(parent: Option<&TraceContext>) -> TraceContext {
    loop {
        let span_id = random();
        let next = match parent {
            Some(parent) if span_id != [0; 8] => Some(parent.child(span_id)),
            Some(_) => None,
            None => {
                let mut trace_id = [0; 16];
                trace_id[..8].copy_from_slice(&random());
                trace_id[8..].copy_from_slice(&random());
                TraceContext::new(trace_id, span_id, true)
            }
        };
        if let Some(next) = next {
            return next;
        }
    }
}

/// Eight bytes that nobody can foresee: a keyed hash of a counter.
fn random() -> [u8; 8] {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    KEY.hash_one(COUNT.fetch_add(1, Ordering::Relaxed)).to_ne_bytes()
}

thread_local! {
    /// Whether a call is being served in a trace here: most of the time that is all there is to know.
    static IS_IN: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<Option<TraceContext>> = const { RefCell::new(None) };
}

/// The trace of the call that is being served, or [`carry`]ed, on this thread.
#[inline]
pub(crate) fn current() -> Option<TraceContext> {
    if !IS_IN.get() {
        return None;
    }
    CURRENT.with_borrow(Clone::clone)
}

/// A trace that this thread is in until this is dropped.
struct Entered<'a> {
    before: Option<TraceContext>,
    _span: tracing::span::Entered<'a>,
}

impl<'a> Entered<'a> {
    fn new(span: &'a Span, trace: &TraceContext) -> Self {
        IS_IN.set(true);
        let before = CURRENT.replace(Some(trace.clone()));
        Self { before, _span: span.enter() }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        IS_IN.set(self.before.is_some());
        CURRENT.set(self.before.take());
    }
}

/// Keeps a future in the trace and the span of where this is called, wherever it is polled: what a
/// handler spawns is otherwise in none.
///
/// ```
/// # use antiphon::{Client, Context, layer};
/// async fn handler(client: Client, _cx: Context) {
///     tokio::spawn(layer::carry(async move {
///         let _ = client.notify("done", ()).await;      // in the trace of the call
///     }));
/// }
/// ```
pub fn carry<F: Future>(future: F) -> Carried<F> {
    Carried { future, span: Span::current(), trace: current() }
}

pin_project! {
    /// A future that is kept in a trace.
    #[derive(Debug)]
    pub struct Carried<F> {
        #[pin]
        future: F,
        span: Span,
        trace: Option<TraceContext>,
    }
}

impl<F: Future> Future for Carried<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(trace) = this.trace else {
            let _span = this.span.enter();
            return this.future.poll(poller);
        };
        let _entered = Entered::new(this.span, trace);
        this.future.poll(poller)
    }
}

pin_project! {
    /// A call in its span.
    pub struct Traced<S, R>
    where
        S: Service<R>,
        R: Passing,
    {
        #[pin]
        carried: Carried<Passage<S, R>>,
    }
}

impl<S, R> Future for Traced<S, R>
where
    S: Service<R, Response = RawJson>,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut carried = self.project().carried;
        let outcome = ready!(carried.as_mut().poll(poller));
        if let Err(error) = &outcome {
            carried.span.record("code", R::code(error).0);
        }
        Poll::Ready(outcome)
    }
}
