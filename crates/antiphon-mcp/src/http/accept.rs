//! The media types that a client accepts.

use antiphon::http::HeaderMap;
use antiphon::http::header::ACCEPT;

pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Whether the client accepts a type. One that says nothing accepts everything.
pub(super) fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    // What the protocol requires, as most clients write it: it need not be taken apart for each request.
    const BOTH: &[u8] = b"application/json, text/event-stream";
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_some_and(|value| value.as_bytes() == BOTH) {
        return true;
    }
    if values.peek().is_none() {
        return true;
    }
    let group = wanted.split('/').next().unwrap_or_default();
    let accepts = |range: &str| {
        let range = range.split(';').next().unwrap_or_default().trim();
        range.eq_ignore_ascii_case(wanted)
            || range == "*/*"
            || range.strip_suffix("/*").is_some_and(|it| it.eq_ignore_ascii_case(group))
    };
    values.filter_map(|value| value.to_str().ok()).any(|value| value.split(',').any(accepts))
}
