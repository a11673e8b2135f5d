//! The statuses of errors, and the responses that the policy makes itself.

use antiphon::http::header::{ALLOW, CONTENT_TYPE};
use antiphon::http::{HeaderValue, Response, StatusCode};
use antiphon::transport::http::HttpBody;
use antiphon::{Code, ErrorObject};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::types::error_codes::{
    HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION,
};

/// The status of an error; `None` for 200.
pub(super) fn status_of(code: i64, is_modern: bool) -> Option<StatusCode> {
    const PARSE_ERROR: i64 = Code::PARSE_ERROR.0;
    const INVALID_REQUEST: i64 = Code::INVALID_REQUEST.0;
    const METHOD_NOT_FOUND: i64 = Code::METHOD_NOT_FOUND.0;
    match code {
        PARSE_ERROR | INVALID_REQUEST => Some(StatusCode::BAD_REQUEST),
        METHOD_NOT_FOUND if is_modern => Some(StatusCode::NOT_FOUND),
        HEADER_MISMATCH | MISSING_REQUIRED_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION => {
            Some(StatusCode::BAD_REQUEST)
        }
        _ => None,
    }
}

pub(super) fn status(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::default());
    *response.status_mut() = status;
    response
}

/// A response with one sentence.
pub(super) fn refuse(code: StatusCode, reason: &'static str) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::from(reason));
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

pub(super) fn method_not_allowed() -> Response<HttpBody> {
    let mut response = refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "GET and DELETE need the Mcp-Session-Id of a session; use POST",
    );
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// A response with a JSON-RPC error. Without an id, the error has none.
pub(super) fn error_response(
    code: StatusCode,
    id: Option<&RawValue>,
    error: &ErrorObject,
) -> Response<HttpBody> {
    #[derive(serde::Serialize)]
    struct ErrorResponse<'a> {
        jsonrpc: &'static str,
        error: &'a ErrorObject,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a RawValue>,
    }
    let body = serde_json::to_vec(&ErrorResponse { jsonrpc: "2.0", error, id }).unwrap_or_default();
    let mut response = Response::new(HttpBody::from(Bytes::from(body)));
    *response.status_mut() = code;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
