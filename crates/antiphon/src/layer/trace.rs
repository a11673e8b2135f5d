//! A `tracing` span for each call, in its W3C trace: [`Trace`].

use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::{RawJson, TraceContext};
use pin_project_lite::pin_project;
use tower_service::Service;
use tracing::Span;
use tracing::field::{Empty, display};

use super::policy::Policy;
use crate::context::Context;
use crate::current_trace::{self, TraceScope, TracedFuture};
use crate::log_excerpt::log_excerpt;
use crate::service::{CallService, LayerCall, ReadyCall};

/// Creates a span for each call, in the W3C trace that the call belongs to.
///
/// The parent span of an incoming call is in members of the message or, if these are absent, in HTTP
/// headers. A single call over HTTP sends its own span in headers. All other outgoing calls send it in
/// members of the message. A malformed trace context is ignored, and a new trace starts.
///
/// A handler reads its trace context with [`Context::trace`]. Calls that the handler makes continue the
/// trace, through any client of this crate and through the peer that called. The span is named `rpc`,
/// has the level `info`, and has the fields `method`, `id`, `transport`, `remote`, `trace_id`, `span_id`,
/// `parent_id`, and `code` if the call fails. A task of [`Context::spawn`] continues the trace. A task of
/// `tokio::spawn` does so only if its future is wrapped with [`carry`](super::carry).
///
/// On a client, it creates a span for each call, and starts a trace if there is none.
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
    /// Continues the traces of incoming calls, and starts a trace for a call without one.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<S: CallService<R>, R: LayerCall> Policy<S, R> for Trace {
    type Future = TraceCall<S, R>;

    fn call(&self, inner: &mut S, mut request: R) -> TraceCall<S, R> {
        let parent = request.call().trace().cloned();
        let parent = parent.or_else(|| request.context().and_then(parent_of_http_request));
        let trace = next_span(parent.as_ref());
        let span = new_span(&request, &trace, parent.as_ref());
        request.call_mut().extensions.insert(trace.clone());
        let request = request.with_trace(&trace);
        let scope = TraceScope { span, trace: Some(trace) };
        let call = scope.run(|| ReadyCall::new(inner, request));
        TraceCall { carried: TracedFuture::new(call, scope) }
    }
}

/// The parent in the headers of an HTTP request. The headers of a WebSocket are ignored, because they
/// belong to the request that opened it.
fn parent_of_http_request(cx: &Context) -> Option<TraceContext> {
    match cx.peer() {
        Ok(_) => None,
        Err(_) => current_trace::read_headers(cx.connection().headers()),
    }
}

fn new_span<R: LayerCall>(
    request: &R,
    trace: &TraceContext,
    parent: Option<&TraceContext>,
) -> Span {
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
    span.record("method", log_excerpt(request.call().method.as_str()));
    span.record("trace_id", display(trace.trace_id()));
    span.record("span_id", display(trace.span_id()));
    if let Some(parent) = parent {
        span.record("parent_id", display(parent.span_id()));
    }
    if let Some(cx) = request.context() {
        span.record("transport", cx.connection().transport);
        if let Some(id) = cx.id() {
            span.record("id", display(log_excerpt(id.as_str())));
        }
        if let Some(remote) = cx.connection().remote {
            span.record("remote", display(remote));
        }
    }
    span
}

/// Returns the trace context of a child span, or of the first span of a new trace.
fn next_span(parent: Option<&TraceContext>) -> TraceContext {
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

/// Returns eight unpredictable bytes: a keyed hash of a counter.
fn random() -> [u8; 8] {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    KEY.hash_one(COUNT.fetch_add(1, Ordering::Relaxed)).to_ne_bytes()
}

pin_project! {
    /// A call in its span.
    pub struct TraceCall<S, R>
    where
        S: Service<R>,
        R: LayerCall,
    {
        #[pin]
        carried: TracedFuture<ReadyCall<S, R>>,
    }
}

impl<S: CallService<R>, R: LayerCall> Future for TraceCall<S, R> {
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut carried = self.project().carried;
        let outcome = ready!(carried.as_mut().poll(poller));
        if let Err(error) = &outcome {
            carried.span().record("code", R::error_code(error).0);
        }
        Poll::Ready(outcome)
    }
}
