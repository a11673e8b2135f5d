//! The headers of a request.

use antiphon::http::header::{ACCEPT, CONTENT_TYPE};
use antiphon::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::client::wire::RoutingHeaders;
use crate::types::Revision;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The headers of every POST.
pub(super) fn of_post(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
}

/// The headers of every GET.
pub(super) fn of_get(headers: &mut HeaderMap) {
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
}

/// The header with the revision.
pub(super) fn of_revision(headers: &mut HeaderMap, revision: Revision) {
    headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
}

/// The headers that repeat the body of a modern request.
pub(super) fn of_message(headers: &mut HeaderMap, method: &str, routing: &RoutingHeaders) {
    if let Ok(method) = HeaderValue::from_str(method) {
        headers.insert(METHOD, method);
    }
    if let Some(name) = &routing.name {
        headers.insert(NAME, encoded(name));
    }
    for (name, value) in &routing.params {
        if let Ok(name) = HeaderName::try_from(name) {
            headers.insert(name, encoded(value));
        }
    }
}

/// A text as the value of a header, in base64 if it is not plain (2026-07-28, Streamable HTTP, "Value Encoding").
fn encoded(text: &str) -> HeaderValue {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.trim_matches([' ', '\t']).len() == text.len()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let plain = HeaderValue::from_str(text).ok().filter(|_| is_plain);
    let base64 = || format!("=?base64?{}?=", STANDARD.encode(text));
    plain.unwrap_or_else(|| {
        HeaderValue::from_str(&base64()).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_plain_are_in_base64() {
        let cases = [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ];
        for (text, value) in cases {
            assert_eq!(encoded(text), value);
        }
    }
}
