//! A request: a head that is encoded once, and a message behind it in the same buffer.
//!
//! The head has the length of the message. So a buffer begins with room for the head, the message is
//! encoded behind the room, and the head is written last, directly before the message. Both leave in one
//! write, and nothing is copied twice.

use bytes::{Buf as _, Bytes};
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};

use crate::endpoint::web_port;
use crate::io::buffer_pool::{self, PooledBuffer};
use crate::transport::http::header_values::lists;

/// The digits of the largest length, and the empty line.
const LENGTH_ROOM: usize = 20 + 4;

/// The head of every request to one address.
#[derive(Debug)]
pub(super) struct RequestHead {
    /// The head up to the length of the message.
    text: Vec<u8>,
    /// Whether the headers ask the server to close the connection.
    pub(super) closes: bool,
}

impl RequestHead {
    pub(super) fn new(uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut text = format!("POST {path} HTTP/1.1\r\n").into_bytes();
        for (name, value) in &with_defaults(uri, headers) {
            text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        text.extend_from_slice(b"content-length: ");
        Self { text, closes: lists(headers, &CONNECTION, "close") }
    }

    /// Returns a buffer for a message of about this many bytes.
    pub(super) fn buffer(&self, message: usize) -> RequestBuffer {
        let mut bytes = PooledBuffer::default();
        let room = self.text.len() + LENGTH_ROOM;
        let whole = room + message;
        let out = if whole > buffer_pool::SIZE { bytes.large(whole) } else { bytes.small() };
        out.resize(room, 0);
        RequestBuffer { bytes, room, overrides: None }
    }

    /// Like `buffer`, for one request with this head and these headers of its own.
    pub(super) fn buffer_with(self, message: usize, headers: &HeaderMap) -> RequestBuffer {
        let buffer = self.buffer(message);
        let overrides = RequestOverrides { head: Some(self), headers: headers.clone() };
        RequestBuffer { overrides: Some(Box::new(overrides)), ..buffer }
    }

    /// Writes the head before the message. Returns the complete request.
    pub(super) fn finish(&self, mut buffer: RequestBuffer) -> PooledBuffer {
        let mut digits = itoa::Buffer::new();
        let length = digits.format(buffer.message().len());
        let digits = length.as_bytes();
        let start = buffer.room - self.text.len() - digits.len() - 4;
        let (head, rest) = buffer.bytes[start..buffer.room].split_at_mut(self.text.len());
        head.copy_from_slice(&self.text);
        rest[..digits.len()].copy_from_slice(digits);
        rest[digits.len()..].copy_from_slice(b"\r\n\r\n");
        buffer.bytes.advance(start);
        buffer.bytes
    }
}

/// A message, with room for a head before it.
#[derive(Debug)]
pub(super) struct RequestBuffer {
    /// The room, and the message so far: the message is appended here.
    pub(super) bytes: PooledBuffer,
    room: usize,
    /// The head and headers of this request, if they differ from those of all requests.
    pub(super) overrides: Option<Box<RequestOverrides>>,
}

/// The head and headers of one request.
#[derive(Debug)]
pub(super) struct RequestOverrides {
    /// For HTTP/1.1: the whole head, with the headers of all requests.
    pub(super) head: Option<RequestHead>,
    /// For HTTP/2 and for layers: the headers of this request alone.
    pub(super) headers: HeaderMap,
}

impl RequestBuffer {
    /// Creates a buffer without room for a head, with these headers.
    pub(super) fn with(message: usize, headers: Option<&HeaderMap>) -> Self {
        let overrides = headers
            .map(|headers| Box::new(RequestOverrides { head: None, headers: headers.clone() }));
        Self { overrides, ..Self::bare(message) }
    }

    /// Creates a buffer without room for a head.
    fn bare(message: usize) -> Self {
        let mut bytes = PooledBuffer::default();
        bytes.reserve(message);
        Self { bytes, room: 0, overrides: None }
    }

    pub(super) fn message(&self) -> &[u8] {
        &self.bytes[self.room..]
    }

    pub(super) fn into_message(mut self) -> Bytes {
        self.bytes.advance(self.room);
        self.bytes.split().freeze()
    }
}

/// Merges the headers of one request into the defaults. A header replaces all defaults of its name.
pub(super) fn merged(all: &HeaderMap, one: &HeaderMap) -> HeaderMap {
    let mut merged = all.clone();
    one.keys().for_each(|name| drop(merged.remove(name)));
    for (name, value) in one {
        merged.append(name, value.clone());
    }
    merged
}

/// Returns the headers of a request: those of the user replace the defaults. The user cannot set the
/// framing of the body.
pub(super) fn with_defaults(uri: &Uri, headers: &HeaderMap) -> HeaderMap {
    let mut all = HeaderMap::new();
    if let Ok(host) = HeaderValue::from_str(&host(uri)) {
        all.insert(HOST, host);
    }
    all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    all.insert(ACCEPT, HeaderValue::from_static("application/json"));
    all.extend(headers.clone());
    all.remove(CONTENT_LENGTH);
    all.remove(TRANSFER_ENCODING);
    all
}

/// Returns the host, and the port if it is not the default (RFC 9110, section 4.2.3).
fn host(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    let usual = web_port(uri.scheme() == Some(&Scheme::HTTPS));
    match uri.port_u16() {
        None => host.to_owned(),
        Some(port) if port == usual => host.to_owned(),
        Some(port) => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(uri: &str, headers: &[(&'static str, &'static str)], message: &str) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let head = RequestHead::new(&uri.parse().unwrap(), &map);
        let mut buffer = head.buffer(message.len());
        buffer.bytes.extend_from_slice(message.as_bytes());
        assert_eq!(buffer.message(), message.as_bytes());
        String::from_utf8(head.finish(buffer).to_vec()).unwrap()
    }

    #[test]
    fn the_head_stands_against_the_message() {
        for len in [0, 9, 10, 12_345] {
            let message = "x".repeat(len);
            let expected = format!(
                "POST /rpc?a=b HTTP/1.1\r\nhost: h:8650\r\ncontent-type: application/json\r\n\
                 accept: application/json\r\ncontent-length: {len}\r\n\r\n{message}"
            );
            assert_eq!(rendered("http://h:8650/rpc?a=b", &[], &message), expected);
        }
    }

    #[test]
    fn the_host_is_named_as_the_address_has_it() {
        for (uri, host) in [
            ("http://example.org/", "example.org"),
            ("http://example.org:80/", "example.org"),
            ("https://example.org:443/", "example.org"),
            ("https://example.org:80/", "example.org:80"),
            ("http://[::1]:8650/", "[::1]:8650"),
            ("http://[::1]/", "[::1]"),
        ] {
            let text = rendered(uri, &[], "");
            assert!(text.contains(&format!("\r\nhost: {host}\r\n")), "{text}");
        }
    }

    #[test]
    fn headers_of_the_user_replace_what_is_usual() {
        let text = rendered(
            "http://h/",
            &[
                ("host", "other"),
                ("content-type", "application/json-rpc"),
                ("x-a", "1"),
                ("x-a", "2"),
                ("content-length", "99"),
                ("transfer-encoding", "chunked"),
            ],
            "{}",
        );
        for line in ["host: other", "content-type: application/json-rpc", "x-a: 1", "x-a: 2"] {
            assert_eq!(text.matches(&format!("\r\n{line}\r\n")).count(), 1, "{text}");
        }
        assert_eq!(text.matches("host").count(), 1, "{text}");
        assert!(!text.contains("99") && !text.contains("chunked"), "{text}");
        assert!(text.contains("content-length: 2\r\n\r\n{}"), "{text}");
    }
}
