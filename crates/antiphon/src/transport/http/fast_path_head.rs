//! The head of a request on the fast path.
//!
//! Invariant: a request is on the fast path only if every header that changes its meaning is known and
//! plain: one Host, one Content-Length in digits, no Transfer-Encoding. A request that two parsers
//! could read in two ways is left to hyper.

use std::mem::MaybeUninit;

use antiphon_core::framing::reserve_hint;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::header_values::number;
use super::rules;
use super::service_state::ServiceState;
use crate::connection::HttpRequestHead;

/// The longest head on the fast path.
pub(super) const MAX_HEAD: usize = 8 * 1024;
/// The most headers on the fast path.
const MAX_HEADERS: usize = 32;

/// The lengths of a request's head and body.
#[derive(Clone, Copy)]
pub(super) struct RequestLength {
    pub(super) head: usize,
    pub(super) body: usize,
}

impl RequestLength {
    /// The length of the whole request.
    pub(super) fn whole(self) -> usize {
        self.head.saturating_add(self.body)
    }

    /// The bytes to read next, when this many have arrived; 0 when the request is complete.
    pub(super) fn wanted(self, arrived: usize) -> usize {
        reserve_hint(self.whole().saturating_sub(arrived), arrived)
    }
}

/// The request is left to hyper.
pub(super) struct NotOnFastPath;

/// Reads a head. `None` while it is incomplete.
pub(super) fn read_head(
    buf: &[u8],
    state: &ServiceState,
) -> Result<Option<RequestLength>, NotOnFastPath> {
    const METHOD: &[u8] = b"POST ";
    let known = buf.len().min(METHOD.len());
    if buf[..known] != METHOD[..known] || state.websocket_only {
        return Err(NotOnFastPath);
    }
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(buf, &mut headers) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(head)) => {
            let body = body_length(&request, state).ok_or(NotOnFastPath)?;
            Ok(Some(RequestLength { head, body }))
        }
        Err(_) => Err(NotOnFastPath),
    }
}

/// The length of the body, if every rule of the fast path holds.
fn body_length(request: &httparse::Request<'_, '_>, state: &ServiceState) -> Option<usize> {
    let (mut host, mut length, mut kind) = (None, None, None);
    for header in request.headers.iter() {
        let slot = match header.name.len() {
            4 if header.name.eq_ignore_ascii_case("host") => &mut host,
            12 if header.name.eq_ignore_ascii_case("content-type") => &mut kind,
            14 if header.name.eq_ignore_ascii_case("content-length") => &mut length,
            10 if header.name.eq_ignore_ascii_case("connection") => {
                if !header.value.eq_ignore_ascii_case(b"keep-alive") {
                    return None;
                }
                continue;
            }
            _ if LEFT_TO_HYPER.iter().any(|name| header.name.eq_ignore_ascii_case(name)) => {
                return None;
            }
            _ => continue,
        };
        if slot.replace(header.value).is_some() {
            return None;
        }
    }
    let path = request.path?;
    let length = usize::try_from(number(length?)?).ok()?;
    let is_message = request.version == Some(1)
        && (state.path.is_some() || is_plain(path))
        && state.serves_path(path)
        && state.http.guard.serves(host?)
        && rules::is_json_type(kind?)
        && rules::fits(length, &state.dispatcher.settings.limits).is_ok();
    is_message.then_some(length)
}

/// Headers that change the meaning of a request, or ask for more than a response.
const LEFT_TO_HYPER: [&str; 7] =
    ["transfer-encoding", "expect", "upgrade", "origin", "te", "trailer", "http2-settings"];

/// Whether every parser reads the path in the same way.
fn is_plain(path: &str) -> bool {
    path.starts_with('/')
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte))
}

/// Parses a head that [`read_head`] has accepted. The values are parts of the text, not copies.
pub(super) fn parse_head(head: &Bytes) -> Option<HttpRequestHead> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(head).ok()?;
    let read = |header: &httparse::Header<'_>| {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_maybe_shared(head.slice_ref(header.value)).ok()?))
    };
    let mut map = HeaderMap::with_capacity(request.headers.len());
    for (name, value) in request.headers.iter().filter_map(read) {
        map.append(name, value);
    }
    let target = request.path.and_then(|path| PathAndQuery::try_from(path).ok());
    Some(HttpRequestHead { method: Method::POST, target, headers: map })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_alone_makes_no_buffer_large() {
        let head = RequestLength { head: 100, body: 1 << 30 };
        assert_eq!(head.wanted(100), 64 << 10);
        assert_eq!(head.wanted(100 << 10), 400 << 10);
        assert_eq!(head.wanted(1 << 30), 100);
        assert_eq!(head.wanted(head.whole()), 0);
    }
}
