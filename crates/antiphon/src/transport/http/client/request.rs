//! A request as it leaves: its head, written once, and a message behind it in the same buffer.
//!
//! The head says how long the message is and stands before it. So a draft begins with room for the
//! head, the message is encoded behind it, and the head is put in last, against the message: both
//! leave in one write, and nothing is copied twice.

use std::io::Write as _;

use bytes::{Buf as _, Bytes};
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};

use crate::endpoint::web_port;
use crate::io::buffer_pool::{self, PooledBuffer};
use crate::transport::http::fields::lists;

/// The digits of the largest length there is, and the empty line.
const LENGTH_ROOM: usize = 20 + 4;

/// What every request to one address begins with.
#[derive(Debug)]
pub(super) struct RequestHead {
    /// All of it up to the length of the message.
    text: Vec<u8>,
    /// The headers ask for the connection to be closed.
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

    /// A draft without a message yet, which will have about this many bytes.
    pub(super) fn draft(&self, message: usize) -> RequestBuffer {
        let mut text = PooledBuffer::default();
        let room = self.text.len() + LENGTH_ROOM;
        let whole = room + message;
        let out = if whole > buffer_pool::SIZE { text.large(whole) } else { text.small() };
        out.resize(room, 0);
        RequestBuffer { text, room, own: None }
    }

    /// The same of which this is the head alone.
    pub(super) fn buffer_with(self, message: usize, headers: &HeaderMap) -> RequestBuffer {
        let draft = self.draft(message);
        let own = RequestOverrides { head: Some(self), headers: headers.clone() };
        RequestBuffer { own: Some(Box::new(own)), ..draft }
    }

    /// The request with its message, ready to be written.
    pub(super) fn finish(&self, mut draft: RequestBuffer) -> PooledBuffer {
        let mut digits = [0; 20];
        let mut free = &mut digits[..];
        // Twenty digits are the most that a length has.
        let _ = write!(free, "{}", draft.message().len());
        let left = free.len();
        let digits = &digits[..20 - left];
        let start = draft.room - self.text.len() - digits.len() - 4;
        let (head, rest) = draft.text[start..draft.room].split_at_mut(self.text.len());
        head.copy_from_slice(&self.text);
        rest[..digits.len()].copy_from_slice(digits);
        rest[digits.len()..].copy_from_slice(b"\r\n\r\n");
        draft.text.advance(start);
        draft.text
    }
}

/// A message, with room before it.
#[derive(Debug)]
pub(super) struct RequestBuffer {
    /// The message is appended here.
    pub(super) text: PooledBuffer,
    room: usize,
    /// What it says beside the message, where that is not what every request says.
    pub(super) own: Option<Box<RequestOverrides>>,
}

/// What one request says beside its message.
#[derive(Debug)]
pub(super) struct RequestOverrides {
    /// By HTTP/1.1, with all that is said by every request.
    pub(super) head: Option<RequestHead>,
    /// By HTTP/2.
    pub(super) headers: HeaderMap,
}

impl RequestBuffer {
    /// Without room for a head, which is another's matter, and with these headers.
    pub(super) fn with(message: usize, headers: Option<&HeaderMap>) -> Self {
        let own = headers
            .map(|headers| Box::new(RequestOverrides { head: None, headers: headers.clone() }));
        Self { own, ..Self::bare(message) }
    }

    /// Without room for a head, and in a buffer that is the message's alone.
    fn bare(message: usize) -> Self {
        let mut text = PooledBuffer::default();
        text.reserve(message);
        Self { text, room: 0, own: None }
    }

    pub(super) fn message(&self) -> &[u8] {
        &self.text[self.room..]
    }

    pub(super) fn into_message(mut self) -> Bytes {
        self.text.advance(self.room);
        self.text.split().freeze()
    }
}

/// Headers of one request beside those of all; of one name, those of the one count.
pub(super) fn merged(all: &HeaderMap, one: &HeaderMap) -> HeaderMap {
    let mut merged = all.clone();
    one.keys().for_each(|name| drop(merged.remove(name)));
    for (name, value) in one {
        merged.append(name, value.clone());
    }
    merged
}

/// What is sent beside the message: what the user set replaces what is usual. Where the message
/// ends is not theirs to say.
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

/// The host, and the port where it is not the usual one (RFC 9110, section 4.2.3).
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
        let mut draft = head.draft(message.len());
        draft.text.extend_from_slice(message.as_bytes());
        assert_eq!(draft.message(), message.as_bytes());
        String::from_utf8(head.finish(draft).to_vec()).unwrap()
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
