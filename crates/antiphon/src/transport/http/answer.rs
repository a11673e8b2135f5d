//! What an HTTP answer looks like: the one place that decides status, headers and body.
//!
//! Every JSON-RPC answer is a 200, errors included, since the exchange succeeded; no answer is a
//! 204. The other statuses say that no JSON-RPC took place.

use antiphon_core::{ErrorObject, Id, encode};
use bytes::{Bytes, BytesMut};
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, UPGRADE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;

pub(super) type HttpResponse = Response<Full<Bytes>>;

/// The answer to a message.
pub(super) fn answered(answer: Option<Bytes>) -> HttpResponse {
    match answer {
        None => status(StatusCode::NO_CONTENT),
        Some(body) => json(StatusCode::OK, body),
    }
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

pub(super) fn text(code: StatusCode, body: &'static str) -> HttpResponse {
    let mut response = status(code);
    *response.body_mut() = Full::new(Bytes::from_static(body.as_bytes()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn json(code: StatusCode, body: Bytes) -> HttpResponse {
    let mut response = status(code);
    *response.body_mut() = Full::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn status(code: StatusCode) -> HttpResponse {
    let mut response = Response::new(Full::default());
    *response.status_mut() = code;
    response
}

/// Whether a body of this type is a JSON-RPC message. A type that an HTML form can send is not, or a
/// foreign page could post past CORS.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return false };
    // As most write it.
    if value == "application/json" {
        return true;
    }
    let value = value.to_str().unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    ["application/json", "application/json-rpc", "application/jsonrequest"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
}
