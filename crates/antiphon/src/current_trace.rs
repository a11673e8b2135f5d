//! The trace context of the current call, its continuation on other tasks, and its HTTP headers.
//!
//! Outgoing calls read [`current`], so a call that a handler makes continues the trace of the call that
//! it handles. The layer [`Trace`](crate::layer::Trace) sets it. The headers are those of W3C Trace
//! Context.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use antiphon_core::TraceContext;
#[cfg(feature = "http")]
use http::HeaderValue;
use http::{HeaderMap, HeaderName};
use pin_project_lite::pin_project;
use tracing::Span;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

thread_local! {
    /// Whether `CURRENT` is set. Most calls read only this flag.
    static IS_SET: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<Option<TraceContext>> = const { RefCell::new(None) };
}

/// Returns the trace context of the call that this thread polls, if there is one.
#[inline]
pub(crate) fn current() -> Option<TraceContext> {
    if !IS_SET.get() {
        return None;
    }
    CURRENT.with_borrow(Clone::clone)
}

/// Sets the current trace context of this thread until it is dropped.
struct TraceGuard {
    previous: Option<TraceContext>,
}

impl TraceGuard {
    fn enter(trace: &TraceContext) -> Self {
        IS_SET.set(true);
        Self { previous: CURRENT.replace(Some(trace.clone())) }
    }
}

impl Drop for TraceGuard {
    fn drop(&mut self) {
        IS_SET.set(self.previous.is_some());
        CURRENT.set(self.previous.take());
    }
}

/// The trace context and the span of a call, which can be continued on another task or thread.
#[derive(Debug)]
pub(crate) struct TraceScope {
    pub(crate) span: Span,
    pub(crate) trace: Option<TraceContext>,
}

impl TraceScope {
    /// The trace context and the span that this thread is in.
    pub(crate) fn current() -> Self {
        Self { span: Span::current(), trace: current() }
    }

    /// Runs a function in the trace and the span.
    #[inline]
    pub(crate) fn run<T>(&self, function: impl FnOnce() -> T) -> T {
        let _trace = self.trace.as_ref().map(TraceGuard::enter);
        self.span.in_scope(function)
    }
}

/// Keeps a future in the current trace and span, on any task that polls it. A task of `tokio::spawn` is
/// otherwise outside of the trace. [`Context::spawn`](crate::Context::spawn) needs no `carry`.
///
/// ```
/// # use antiphon::{Client, Context, layer};
/// async fn handler(client: Client, _cx: Context) {
///     tokio::spawn(layer::carry(async move {
///         let _ = client.notify("done", ()).await;      // in the trace of the call
///     }));
/// }
/// ```
pub fn carry<F: Future>(future: F) -> TracedFuture<F> {
    TracedFuture::new(future, TraceScope::current())
}

pin_project! {
    /// A future that is polled in a trace and a span.
    #[derive(Debug)]
    pub struct TracedFuture<F> {
        #[pin]
        future: F,
        scope: TraceScope,
    }
}

impl<F> TracedFuture<F> {
    pub(crate) fn new(future: F, scope: TraceScope) -> Self {
        Self { future, scope }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.scope.span
    }
}

impl<F: Future> Future for TracedFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.scope.run(|| this.future.poll(poller))
    }
}

/// Reads the trace context of an HTTP request. Returns `None` if it is malformed or repeated.
pub(crate) fn read_headers(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let trace = TraceContext::parse(parent.to_str().ok()?.trim())?;
    let states: Vec<_> =
        headers.get_all(TRACESTATE).iter().filter_map(|state| state.to_str().ok()).collect();
    Some(if states.is_empty() { trace } else { trace.with_state(&states.join(",")) })
}

/// Writes the trace context of an HTTP request.
#[cfg(feature = "http")]
pub(crate) fn write_headers(trace: &TraceContext, headers: &mut HeaderMap) {
    if let Ok(parent) = HeaderValue::from_str(&trace.to_string()) {
        headers.insert(TRACEPARENT, parent);
    }
    if let Some(Ok(state)) = trace.state().map(HeaderValue::from_str) {
        headers.insert(TRACESTATE, state);
    }
}
