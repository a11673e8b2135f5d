//! The trace context of the current call, and its HTTP headers.
//!
//! Outgoing calls read [`current`], so a call that a handler makes continues the trace of the call that
//! it handles. The layer [`Trace`](crate::layer::Trace) sets it. The headers are those of W3C Trace
//! Context.

use std::cell::{Cell, RefCell};

use antiphon_core::TraceContext;
#[cfg(feature = "http")]
use http::HeaderValue;
use http::{HeaderMap, HeaderName};

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
pub(crate) struct TraceGuard {
    previous: Option<TraceContext>,
}

impl TraceGuard {
    pub(crate) fn enter(trace: &TraceContext) -> Self {
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
