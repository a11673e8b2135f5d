//! What an HTTP answer looks like: the one place that decides status, headers and body.
//!
//! Every JSON-RPC answer is a 200, errors included, since the exchange succeeded; no answer is a
//! 204. The other statuses say that no JSON-RPC took place. One is both: where every call was refused
//! for want of credentials, the answer is a 401, which HTTP clients know what to do about.

use std::fmt::Write as _;
use std::sync::Arc;

use antiphon_core::{ErrorObject, Id, Payload, encode};
use bytes::{Bytes, BytesMut};
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, UPGRADE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::date;
use super::server_service::HttpBody;
use crate::connection::Connection;
use crate::context::Origin;
use crate::engine::ReplyTail;
use crate::error::BoxError;
use crate::io::write_buffer::{LARGE, WriteBuffer};

pub(super) type HttpResponse = Response<HttpBody>;

/// A message that was asked: by whom, and how many calls it holds.
pub(super) struct Asked {
    pub(super) origin: Origin,
    calls: usize,
}

impl Asked {
    pub(super) fn new(connection: Connection, payload: &Payload) -> Self {
        let calls = match payload {
            Payload::One(_) => 1,
            Payload::Batch(entries) => entries.len(),
        };
        Self { origin: Origin::Request(Arc::new(connection)), calls }
    }

    /// What to ask for, where every call was refused for want of it.
    #[inline]
    fn challenge(&self) -> Option<&'static str> {
        self.origin.connection().is_unauthorized(self.calls).then_some(CHALLENGE)
    }
}

/// The value of `WWW-Authenticate` in a 401 response.
const CHALLENGE: &str = "Bearer, Basic realm=\"antiphon\", charset=\"UTF-8\"";

/// The answer to a message.
pub(super) fn answered(answer: Option<Bytes>, asked: &Asked) -> HttpResponse {
    let challenge = asked.challenge();
    let mut response = match (answer, &challenge) {
        (None, None) => status(StatusCode::NO_CONTENT),
        (None, Some(_)) => status(StatusCode::UNAUTHORIZED),
        (Some(body), None) => json(StatusCode::OK, body),
        (Some(body), Some(_)) => json(StatusCode::UNAUTHORIZED, body),
    };
    if let Some(challenge) = challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    response
}

/// A JSON-RPC error with a status of its own: 413, 503.
pub(super) fn error(status: StatusCode, error: ErrorObject) -> HttpResponse {
    let mut body = BytesMut::new();
    encode::response(&Id::Null, &Err(error), &mut body);
    json(status, body.freeze())
}

pub(super) fn too_large(limit: usize) -> HttpResponse {
    error(StatusCode::PAYLOAD_TOO_LARGE, ErrorObject::request_too_large(limit))
}

pub(super) fn method_not_allowed() -> HttpResponse {
    let hint = "send a JSON-RPC message by POST, or upgrade to WebSocket by GET\n";
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, hint);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

pub(super) fn upgrade_required() -> HttpResponse {
    let mut response = text(StatusCode::UPGRADE_REQUIRED, "this endpoint speaks WebSocket only\n");
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

pub(super) fn unsupported_media_type() -> HttpResponse {
    let hint = "set content-type to application/json\n";
    text(StatusCode::UNSUPPORTED_MEDIA_TYPE, hint)
}

pub(super) fn with_headers(code: StatusCode, headers: HeaderMap) -> HttpResponse {
    let mut response = status(code);
    *response.headers_mut() = headers;
    response
}

/// The answer to a request that a layer gives none to. Why is nobody's business but ours.
#[expect(clippy::needless_pass_by_value, reason = "it ends here")]
pub(super) fn failed(error: BoxError) -> HttpResponse {
    tracing::warn!(%error, "a layer ended an HTTP request");
    on_connect_failed()
}

pub(super) fn page(content_type: HeaderValue, body: String) -> HttpResponse {
    let mut response = Response::new(HttpBody::whole(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

pub(super) fn text(code: StatusCode, body: &'static str) -> HttpResponse {
    let mut response = status(code);
    *response.body_mut() = HttpBody::whole(Bytes::from_static(body.as_bytes()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn json(code: StatusCode, body: Bytes) -> HttpResponse {
    let mut response = status(code);
    *response.body_mut() = HttpBody::whole(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn status(code: StatusCode) -> HttpResponse {
    let mut response = Response::new(HttpBody::whole(Bytes::new()));
    *response.status_mut() = code;
    response
}

/// The answer to a message as it is on the wire, for connections that are served without hyper; one
/// that is the last says so. What stands behind it, if there is more of it, is not copied.
pub(super) fn write_answered(
    answer: Option<Bytes>,
    behind: Option<Box<ReplyTail>>,
    asked: &Asked,
    last: bool,
    out: &mut WriteBuffer,
) {
    let challenge = asked.challenge();
    let head: &[u8] = match answer {
        _ if challenge.is_some() => b"HTTP/1.1 401 Unauthorized\r\n",
        None => b"HTTP/1.1 204 No Content\r\n",
        Some(_) => b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ",
    };
    let is_empty = answer.is_none();
    let body = answer.unwrap_or_default();
    let tail = out.tail();
    tail.reserve(HEAD + if body.len() < LARGE { body.len() } else { 0 });
    tail.extend_from_slice(head);
    if let Some(challenge) = challenge {
        write_challenge(challenge, is_empty, tail);
    }
    if !body.is_empty() {
        write_number(body.len() + behind.as_ref().map_or(0, |behind| behind.len()), tail);
        tail.extend_from_slice(b"\r\n");
    }
    if last {
        tail.extend_from_slice(b"connection: close\r\n");
    }
    tail.extend_from_slice(b"date: ");
    date::write(tail);
    tail.extend_from_slice(b"\r\n\r\n");
    if body.len() < LARGE {
        tail.extend_from_slice(&body);
    } else {
        out.push(body);
    }
    if let Some(behind) = behind {
        out.push(behind.result);
        out.tail().extend_from_slice(&behind.end);
    }
}

/// The rest of a head that asks for credentials, up to the length of a body where there is one.
#[cold]
fn write_challenge(challenge: &str, is_empty: bool, out: &mut BytesMut) {
    out.extend_from_slice(b"www-authenticate: ");
    out.extend_from_slice(challenge.as_bytes());
    out.extend_from_slice(match is_empty {
        true => b"\r\ncontent-length: 0\r\n",
        false => b"\r\ncontent-type: application/json\r\ncontent-length: ",
    });
}

/// Room for a head.
const HEAD: usize = 192;

/// The last words to a client whose body does not come.
pub(super) fn write_stalled(out: &mut WriteBuffer) {
    let status = b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain\r\n";
    write_last(status, STALLED.as_bytes(), out.tail());
}

/// What a client hears whose body does not come.
const STALLED: &str = "the body never came\n";

pub(super) fn stalled() -> HttpResponse {
    text(StatusCode::REQUEST_TIMEOUT, STALLED)
}

/// The response where the application failed to complete the facts of a request.
pub(super) fn on_connect_failed() -> HttpResponse {
    text(StatusCode::INTERNAL_SERVER_ERROR, FAILED)
}

/// Like [`on_connect_failed`], for connections that are served without hyper.
pub(super) fn write_failed(out: &mut WriteBuffer) {
    let status = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\n";
    write_last(status, FAILED.as_bytes(), out.tail());
}

const FAILED: &str = "the request could not be served\n";

/// The last answer of a server that waits no longer.
pub(super) fn write_expired(out: &mut WriteBuffer) {
    let mut body = BytesMut::new();
    encode::response(&Id::Null, &Err(ErrorObject::server_busy("shutting down")), &mut body);
    let status = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n";
    write_last(status, &body, out.tail());
}

fn write_last(status_and_type: &[u8], body: &[u8], out: &mut BytesMut) {
    out.extend_from_slice(status_and_type);
    out.extend_from_slice(b"content-length: ");
    write_number(body.len(), out);
    out.extend_from_slice(b"\r\nconnection: close\r\ndate: ");
    date::write(out);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body);
}

fn write_number(number: usize, out: &mut BytesMut) {
    // A `BytesMut` grows as needed, so writing to it cannot fail.
    let _ = write!(out, "{number}");
}

/// Whether a body of this type is a JSON-RPC message. A type that an HTML form can send is not, or a
/// foreign page could post past CORS.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| is_json_type(value.as_bytes()))
}

/// The same for the header's value.
pub(super) fn is_json_type(value: &[u8]) -> bool {
    // As most write it.
    if value == b"application/json" {
        return true;
    }
    let value = std::str::from_utf8(value).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    ["application/json", "application/json-rpc", "application/jsonrequest"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
}
