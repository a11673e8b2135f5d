//! One call or notification: its method, its params, and what travels with it.

use antiphon_core::{Id, Method, Params, TraceContext};
use bytes::BytesMut;
use http::{Extensions, HeaderMap};

use crate::current_trace;
use crate::dialect::CallStyle;

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
    pub(crate) fn encode_head(&self, style: CallStyle, out: &mut BytesMut) {
        style.encode_head(&self.method, self.params.as_ref(), out);
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
