//! Encoding of messages as JSON text.
//!
//! This module does not frame messages: see [`framing`](crate::framing).
//!
//! Invariant: raw members are copied byte for byte, white space included.

use bytes::{BufMut, BytesMut};

use crate::error::ErrorObject;
use crate::id::{Id, OtherId};
use crate::message::{Message, Notification, Outcome, Params, Request, Response};
use crate::method::Method;
use crate::version::Version;

impl Message {
    /// Appends the message as JSON.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Request(request) => request.encode(out),
            Self::Notification(notification) => notification.encode(out),
            Self::Response(response) => response.encode(out),
        }
    }
}

impl Request {
    /// Appends the Request as JSON.
    pub fn encode(&self, out: &mut BytesMut) {
        call_head(&self.method, self.params.as_ref(), out);
        if let Some(trace) = &self.trace {
            trace.encode(out);
        }
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(self.id.as_bytes());
        out.put_u8(b'}');
    }
}

impl Notification {
    /// Appends the Notification as JSON.
    pub fn encode(&self, out: &mut BytesMut) {
        call_head(&self.method, self.params.as_ref(), out);
        if let Some(trace) = &self.trace {
            trace.encode(out);
        }
        out.put_u8(b'}');
    }
}

impl Response {
    /// Appends the Response as JSON.
    pub fn encode(&self, out: &mut BytesMut) {
        response(&self.id, &self.outcome, out);
    }
}

/// Appends the Response with this id and outcome, in the version of the id.
///
/// ```
/// use antiphon_core::{Id, RawJson, encode};
/// use bytes::BytesMut;
///
/// let mut out = BytesMut::new();
/// encode::response(&Id::from(1), &Ok(RawJson::NULL), &mut out);
/// assert_eq!(&out[..], br#"{"jsonrpc":"2.0","result":null,"id":1}"#);
/// ```
pub fn response(id: &Id, outcome: &Outcome, out: &mut BytesMut) {
    let id = match id {
        Id::Other(id) => return other_response(id, outcome, out),
        _ => id.as_bytes(),
    };
    match outcome {
        Ok(result) => {
            out.extend_from_slice(BEFORE_RESULT);
            out.extend_from_slice(result.as_bytes());
        }
        Err(error) => {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"error\":");
            error.encode(out);
        }
    }
    after_outcome_of(id, out);
}

/// Appends a 1.0 Response, or a 2.0 Response with an id that 2.0 does not allow. A 1.0 Response has both `result` and
/// `error`. If the request has no id, the Response has none.
#[cold]
fn other_response(id: &OtherId, outcome: &Outcome, out: &mut BytesMut) {
    let is_v1 = id.version() == Version::V1;
    out.extend_from_slice(if is_v1 { b"{" } else { b"{\"jsonrpc\":\"2.0\"," });
    match outcome {
        Ok(result) => {
            out.extend_from_slice(b"\"result\":");
            out.extend_from_slice(result.as_bytes());
            out.extend_from_slice(if is_v1 { b",\"error\":null" } else { b"" });
        }
        Err(error) => {
            out.extend_from_slice(if is_v1 {
                b"\"result\":null,\"error\":"
            } else {
                b"\"error\":"
            });
            error.encode(out);
        }
    }
    if let Some(id) = id.as_json() {
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(id.as_bytes());
    }
    out.put_u8(b'}');
}

/// The bytes before the result of a 2.0 Response, for writers that do not copy the result.
pub const BEFORE_RESULT: &[u8] = b"{\"jsonrpc\":\"2.0\",\"result\":";

/// Appends the end of a 2.0 Response: everything after its result or error.
#[inline]
pub fn after_outcome(id: &Id, out: &mut BytesMut) {
    after_outcome_of(id.as_bytes(), out);
}

#[inline]
fn after_outcome_of(id: &[u8], out: &mut BytesMut) {
    out.extend_from_slice(b",\"id\":");
    out.extend_from_slice(id);
    out.put_u8(b'}');
}

/// Returns the encoded length of a Response: exact for a result, an estimate for an error.
#[inline]
pub fn response_len(id: &Id, outcome: &Outcome) -> usize {
    let outcome = match outcome {
        Ok(result) => result.as_bytes().len(),
        Err(error) => {
            let data = error.data.as_ref().map_or(0, |data| data.as_bytes().len());
            32 + error.message.len() + data
        }
    };
    let members = match id {
        Id::Other(id) => other_members_len(id),
        _ => b"{\"jsonrpc\":\"2.0\",\"result\":,\"id\":".len() + id.as_bytes().len(),
    };
    members + outcome + b"}".len()
}

/// Returns the encoded length of a Response with this id, without its result and the closing brace.
#[cold]
fn other_members_len(id: &OtherId) -> usize {
    let members = match id.version() {
        Version::V1 => b"{\"result\":,\"error\":null".len(),
        Version::V2 => b"{\"jsonrpc\":\"2.0\",\"result\":".len(),
    };
    members + id.as_json().map_or(0, |id| b",\"id\":".len() + id.as_bytes().len())
}

impl ErrorObject {
    /// Appends the `error` member's value as JSON.
    pub fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(b"{\"code\":");
        text(&self.code.0, out);
        out.extend_from_slice(b",\"message\":");
        text(&self.message, out);
        if let Some(data) = &self.data {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.as_bytes());
        }
        out.put_u8(b'}');
    }
}

/// Appends a call up to its id, without the closing brace.
pub fn call_head(method: &Method, params: Option<&Params>, out: &mut BytesMut) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    out.extend_from_slice(method.as_json().as_bytes());
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.as_json().as_bytes());
    }
}

pub(crate) fn text(value: &(impl serde::Serialize + ?Sized), out: &mut BytesMut) {
    serde_json::to_writer(out.writer(), value).expect("a buffer takes integers and strings");
}
