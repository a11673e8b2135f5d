//! What web pages may send to the endpoint and read from it.
//!
//! The guard of the library decides which origins may, refuses the others, and names the origin in each response.

use antiphon::Connection;
use antiphon::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, WWW_AUTHENTICATE,
};
use antiphon::http::{HeaderValue, Method, Response, StatusCode};
use antiphon::transport::http::HttpBody;

use super::legacy::SESSION_ID;

/// The headers of both eras. `*` stands for `Mcp-Param-*`, whose names depend on the tools; it never includes
/// `Authorization`.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, \
    mcp-session-id, traceparent, tracestate, *",
);

/// Whether a request is the question of a browser whether a page may send another one.
pub(super) fn is_preflight(request: &Connection) -> bool {
    request.http_method() == Some(&Method::OPTIONS)
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The response to a preflight request.
pub(super) fn preflight() -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

/// Lets a page read the headers of a response that a client needs.
pub(super) fn expose(mut response: Response<HttpBody>) -> Response<HttpBody> {
    let headers = response.headers_mut();
    if headers.contains_key(SESSION_ID) || headers.contains_key(WWW_AUTHENTICATE) {
        let exposed = HeaderValue::from_static("mcp-session-id, www-authenticate");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}
