//! The rules that make an HTTP request a JSON-RPC message: Host, path, content type and length.
//!
//! The fast path and the service apply the same functions, so that no request is a message to one and
//! not to the other.

use antiphon_core::Limits;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, Request, Version};

use super::refusal::HttpRefusal;

/// Checks that a request of HTTP/1.1 has one Host, and any other at most one (RFC 9112, section 3.2):
/// two readers could each use another one.
pub(super) fn one_host<B>(request: &Request<B>, is_required: bool) -> Result<(), HttpRefusal> {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => Err(HttpRefusal::InvalidHost("a request has one Host header; send one")),
        (None, None) if is_required && request.version() == Version::HTTP_11 => {
            Err(HttpRefusal::InvalidHost("a request of HTTP/1.1 has a Host header; send one"))
        }
        _ => Ok(()),
    }
}

/// Whether the body is a JSON-RPC message by its type. A type that an HTML form can send is not, or a
/// foreign page could post past CORS.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| is_json_type(value.as_bytes()))
}

/// Like [`is_json`], for the value of the header.
pub(super) fn is_json_type(value: &[u8]) -> bool {
    // The common spelling.
    if value == b"application/json" {
        return true;
    }
    let value = std::str::from_utf8(value).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    ["application/json", "application/json-rpc", "application/jsonrequest"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
}

/// The limit of a body in bytes, or the refusal of a body that is longer.
pub(super) fn fits(length: usize, limits: &Limits) -> Result<(), HttpRefusal> {
    let limit = limits.longest_frame();
    if length > limit { Err(HttpRefusal::BodyTooLarge(limit)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_host() {
        let has = |hosts: &[&str], version, is_required| {
            let mut request = Request::builder().version(version);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            one_host(&request.body(()).unwrap(), is_required).is_ok()
        };
        assert!(has(&["a"], Version::HTTP_11, true));
        assert!(has(&[], Version::HTTP_11, false));
        assert!(has(&[], Version::HTTP_10, true) && has(&[], Version::HTTP_2, true));
        assert!(!has(&[], Version::HTTP_11, true));
        assert!(
            !has(&["a", "a"], Version::HTTP_11, false) && !has(&["a", "b"], Version::HTTP_10, true)
        );
    }
}
