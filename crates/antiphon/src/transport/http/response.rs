//! The default HTTP response to a message.
//!
//! The status is 200 for every JSON-RPC response, errors included, since the exchange succeeded. It is
//! 204 if there is no response. Other statuses mean that no JSON-RPC took place, with one exception: it
//! is 401 if every call was rejected for lack of credentials, because HTTP clients know how to react to
//! that.

use antiphon_core::Payload;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::http_body::HttpBody;
use crate::connection::Connection;
use crate::context::Origin;
use crate::tap::{Direction, Taps};

pub(super) type HttpResponse = Response<HttpBody>;

/// The origin of a message, and the number of its calls.
pub(super) struct Dispatched {
    pub(super) origin: Origin,
    pub(super) calls: usize,
}

/// The value of `www-authenticate` in a 401 response.
const CHALLENGE: &str = "Bearer, Basic realm=\"antiphon\", charset=\"UTF-8\"";

impl Dispatched {
    #[inline]
    pub(super) fn new(connection: Connection, payload: &Payload) -> Self {
        Self { origin: Origin::request(connection), calls: calls(payload) }
    }

    /// Returns the value of `www-authenticate`, if every call was rejected for lack of credentials.
    #[inline]
    pub(super) fn challenge(&self) -> Option<&'static str> {
        self.origin.connection().is_unauthorized(self.calls).then_some(CHALLENGE)
    }
}

/// Shows the reply to the tap of the server.
#[inline]
pub(super) fn tap_reply(tap: &Taps, reply: Option<&Bytes>, origin: &Origin) {
    if let Some(reply) = reply {
        tap.message(Direction::Sent, reply, origin.connection());
    }
}

/// The number of calls in a payload.
pub(super) fn calls(payload: &Payload) -> usize {
    match payload {
        Payload::One(_) => 1,
        Payload::Batch(entries) => entries.len(),
    }
}

/// The default response to a message.
#[inline]
pub(super) fn reply(reply: Option<Bytes>, challenge: Option<&'static str>) -> HttpResponse {
    let code = match (&reply, challenge) {
        (_, Some(_)) => StatusCode::UNAUTHORIZED,
        (None, None) => StatusCode::NO_CONTENT,
        (Some(_), None) => StatusCode::OK,
    };
    let has_body = reply.is_some();
    // Built in place: a response that is moved costs some 30 instructions each time.
    let mut response = Response::new(reply.unwrap_or_default().into());
    *response.status_mut() = code;
    if has_body {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(challenge) = challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    response
}

pub(super) fn with_headers(code: StatusCode, headers: HeaderMap) -> HttpResponse {
    let mut response = status(code);
    *response.headers_mut() = headers;
    response
}

pub(super) fn page(content_type: HeaderValue, body: String) -> HttpResponse {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

pub(super) fn with_body(code: StatusCode, content_type: &'static str, body: Bytes) -> HttpResponse {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn status(code: StatusCode) -> HttpResponse {
    let mut response = Response::new(HttpBody::default());
    *response.status_mut() = code;
    response
}
