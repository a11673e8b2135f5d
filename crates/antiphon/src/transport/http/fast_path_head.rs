//! Which requests are usual, told by their heads.
//!
//! Invariant: a request is usual only if every header that changes its meaning is known and plain: one
//! Host, one Content-Length in digits, no Transfer-Encoding. Where two parsers could disagree, it is
//! not usual.

use std::mem::MaybeUninit;

use antiphon_core::framing::reserve_hint;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::answer;
use super::fields::number;
use super::service::Inner;

/// A head of more bytes than this is hyper's.
pub(super) const MAX_HEAD: usize = 8 * 1024;
/// And so is one of more headers.
const MAX_HEADERS: usize = 32;

/// How long a request's head and body are.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) head: usize,
    pub(super) body: usize,
}

impl Head {
    /// How long the request is.
    pub(super) fn whole(self) -> usize {
        self.head.saturating_add(self.body)
    }

    /// How much more is worth a read, when so much has come; nothing, when that is all.
    pub(super) fn wanted(self, come: usize) -> usize {
        reserve_hint(self.whole().saturating_sub(come), come)
    }
}

/// It is hyper's.
pub(super) struct NotOnFastPath;

/// The head of a usual request, if it is all there.
pub(super) fn read_head(buf: &[u8], inner: &Inner) -> Result<Option<Head>, NotOnFastPath> {
    const METHOD: &[u8] = b"POST ";
    let known = buf.len().min(METHOD.len());
    if buf[..known] != METHOD[..known] || inner.websocket_only {
        return Err(NotOnFastPath);
    }
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(buf, &mut headers) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(head)) => {
            let body = usual_body(&request, inner).ok_or(NotOnFastPath)?;
            Ok(Some(Head { head, body }))
        }
        Err(_) => Err(NotOnFastPath),
    }
}

/// How long the body of this request is, if all about it is usual.
fn usual_body(request: &httparse::Request<'_, '_>, inner: &Inner) -> Option<usize> {
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
            _ if UNUSUAL.iter().any(|name| header.name.eq_ignore_ascii_case(name)) => return None,
            _ => continue,
        };
        if slot.replace(header.value).is_some() {
            return None;
        }
    }
    let path = request.path?;
    let right_path = inner.path.as_ref().map_or_else(|| is_plain(path), |known| known == path);
    let length = usize::try_from(number(length?)?).ok()?;
    let usual = request.version == Some(1)
        && right_path
        && inner.guard.serves(host?)
        && answer::is_json_type(kind?)
        && length <= inner.dispatcher.settings.limits.longest_frame();
    usual.then_some(length)
}

/// What changes the meaning of a request, or asks for more than an answer.
const UNUSUAL: [&str; 7] =
    ["transfer-encoding", "expect", "upgrade", "origin", "te", "trailer", "http2-settings"];

/// Whether no two parsers can read a path in two ways.
fn is_plain(path: &str) -> bool {
    path.starts_with('/')
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte))
}

/// The headers of a head that was read before.
pub(super) fn read_headers(head: &[u8]) -> HeaderMap {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    if request.parse(head).is_err() {
        return HeaderMap::new();
    }
    let read = |header: &httparse::Header<'_>| {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(header.value).ok()?))
    };
    let mut map = HeaderMap::new();
    for (name, value) in request.headers.iter().filter_map(read) {
        map.append(name, value);
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_alone_makes_no_buffer_large() {
        let head = Head { head: 100, body: 1 << 30 };
        assert_eq!(head.wanted(100), 64 << 10);
        assert_eq!(head.wanted(100 << 10), 400 << 10);
        assert_eq!(head.wanted(1 << 30), 100);
        assert_eq!(head.wanted(head.whole()), 0);
    }
}
