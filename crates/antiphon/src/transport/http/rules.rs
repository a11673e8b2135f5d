//! The rules that make an HTTP request a JSON-RPC message: Host, path, content type and length.
//!
//! The fast path and the service apply the same functions, so that no request is a message to one and
//! not to the other.

use antiphon_core::Limits;
use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Version};

use super::refusal::HttpRefusal;

/// The headers that the rules read. They are found in one pass, because a lookup by name hashes it: three
/// lookups cost some 300 instructions, the pass over a small head 100.
#[derive(Default)]
pub(super) struct RuleHeaders<'a> {
    pub(super) host: Option<&'a HeaderValue>,
    has_two_hosts: bool,
    pub(super) origin: Option<&'a HeaderValue>,
    content_type: Option<&'a HeaderValue>,
}

impl<'a> RuleHeaders<'a> {
    /// Finds the headers. Of several with one name, the first one counts.
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let mut found = Self::default();
        for (name, value) in headers {
            if *name == HOST {
                found.has_two_hosts = found.host.is_some();
                found.host = found.host.or(Some(value));
            } else if *name == CONTENT_TYPE {
                found.content_type = found.content_type.or(Some(value));
            } else if *name == ORIGIN {
                found.origin = found.origin.or(Some(value));
            }
        }
        found
    }

    /// Checks that a request of HTTP/1.1 has one Host, and any other at most one (RFC 9112, section
    /// 3.2): two readers could each use another one.
    pub(super) fn one_host(&self, version: Version, is_required: bool) -> Result<(), HttpRefusal> {
        if self.has_two_hosts {
            return Err(HttpRefusal::InvalidHost("a request has one Host header; send one"));
        }
        if self.host.is_none() && is_required && version == Version::HTTP_11 {
            let reason = "a request of HTTP/1.1 has a Host header; send one";
            return Err(HttpRefusal::InvalidHost(reason));
        }
        Ok(())
    }

    /// Whether the body is a JSON-RPC message by its type. A type that an HTML form can send is not, or a
    /// foreign page could post past CORS.
    pub(super) fn is_json(&self) -> bool {
        self.content_type.is_some_and(|value| is_json_type(value.as_bytes()))
    }
}

/// Like [`RuleHeaders::is_json`], for the value of the header.
pub(super) fn is_json_type(value: &[u8]) -> bool {
    // The common spelling.
    if value == b"application/json" {
        return true;
    }
    let essence = essence(value);
    ["application/json", "application/json-rpc", "application/jsonrequest"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
}

/// The content type without its parameters.
pub(super) fn essence(value: &[u8]) -> &str {
    let value = std::str::from_utf8(value).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
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
        let has = |hosts: &[&'static str], version, is_required| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_static(host));
            }
            RuleHeaders::of(&headers).one_host(version, is_required).is_ok()
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
