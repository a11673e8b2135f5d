//! The head of a response: its status, the length of its body, and whether the connection stays open.
//!
//! The rules are those of RFC 9112, section 6.3. An ambiguous head is rejected, except for the one case
//! that the section itself decides: chunks beside a length.

use std::mem::MaybeUninit;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::error::ExchangeError;
use crate::transport::http::header_values::{is, members, number};

/// The largest number of headers, and of trailers.
pub(super) const MAX_HEADERS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    /// The size of the head in bytes.
    pub(super) len: usize,
    pub(super) body: BodyLength,
    /// Whether the server keeps the connection open.
    pub(super) keeps_alive: bool,
    /// Whether the headers say that the body is plain JSON, or nothing else.
    pub(super) is_plain_json: bool,
}

/// The length of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Length(u64),
    Chunked,
    /// The body ends with the connection.
    UntilClose,
}

/// Returns the head at the front of `buf`, if it is complete.
pub(super) fn read_head(buf: &[u8]) -> Result<Option<ResponseHead>, ExchangeError> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    match parser.parse_response_with_uninit_headers(&mut response, buf, &mut headers) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(len)) => interpret(&response, len).map(Some),
        Err(httparse::Error::TooManyHeaders) => {
            Err(ExchangeError::Malformed(format!("it has more than {MAX_HEADERS} headers").into()))
        }
        Err(error) => Err(ExchangeError::Malformed(error.to_string().into())),
    }
}

/// Returns the headers of a head that [`read_head`] has accepted.
pub(super) fn read_headers(head: &[u8]) -> HeaderMap {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    if response.parse(head).is_err() {
        return HeaderMap::new();
    }
    let read = |header: &httparse::Header<'_>| {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(header.value).ok()?))
    };
    let mut map = HeaderMap::new();
    for (name, value) in response.headers.iter().filter_map(read) {
        map.append(name, value);
    }
    map
}

fn interpret(
    response: &httparse::Response<'_, '_>,
    len: usize,
) -> Result<ResponseHead, ExchangeError> {
    let code = response.code.unwrap_or_default();
    let status = StatusCode::from_u16(code)
        .map_err(|_| ExchangeError::Malformed(format!("its status is {code}").into()))?;
    let is_http10 = response.version == Some(0);
    let mut framing = FramingHeaders::default();
    for header in response.headers.iter() {
        framing.read(header.name, header.value)?;
    }
    let (body, keeps_alive) = match (status.as_u16(), framing.chunked, framing.length) {
        // The bytes of another protocol follow.
        (101, ..) => (BodyLength::Length(0), false),
        // These have no body, whatever their headers announce. After one that announces a body the
        // connection is not reused, since the server may send it.
        (100..200 | 204 | 304, chunked, length) => {
            (BodyLength::Length(0), !chunked && length.unwrap_or_default() == 0)
        }
        (_, true, _) if is_http10 => {
            return Err(ExchangeError::Malformed("HTTP/1.0 has no chunks".into()));
        }
        // A response with both may be an attempt at smuggling: section 6.1 requires to close the
        // connection after it.
        (_, true, length) => (BodyLength::Chunked, length.is_none()),
        (_, false, Some(length)) => (BodyLength::Length(length), true),
        (_, false, None) => (BodyLength::UntilClose, false),
    };
    let keeps_alive = keeps_alive && !framing.close && (!is_http10 || framing.keep_alive);
    Ok(ResponseHead { status, len, body, keeps_alive, is_plain_json: !framing.other_content })
}

const JSON: &[u8] = b"application/json";

/// Whether this header allows that the body is JSON without an encoding.
pub(super) fn is_plain_json(name: &str, value: &[u8]) -> bool {
    if name.eq_ignore_ascii_case("content-type") {
        return value.get(..JSON.len()).is_some_and(|start| start.eq_ignore_ascii_case(JSON));
    }
    !name.eq_ignore_ascii_case("content-encoding") || is(value, "identity")
}

/// The headers that frame the body, or decide about the connection.
#[derive(Default)]
struct FramingHeaders {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    /// The body is of another type than JSON, or it has an encoding.
    other_content: bool,
}

impl FramingHeaders {
    fn read(&mut self, name: &str, value: &[u8]) -> Result<(), ExchangeError> {
        // The length of the name rules out most headers without a comparison.
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                for member in members(value) {
                    self.close |= is(member, "close");
                    self.keep_alive |= is(member, "keep-alive");
                }
            }
            // The usual value needs no look at the name.
            12 if value == JSON => {}
            12 | 16 => self.other_content |= !is_plain_json(name, value),
            14 if name.eq_ignore_ascii_case("content-length") => self.read_length(value)?,
            17 if name.eq_ignore_ascii_case("transfer-encoding") => self.read_coding(value)?,
            _ => {}
        }
        Ok(())
    }

    /// A repeated length must be the same.
    fn read_length(&mut self, value: &[u8]) -> Result<(), ExchangeError> {
        for part in value.split(|&byte| byte == b',') {
            let length = number(part.trim_ascii())
                .ok_or(ExchangeError::Malformed("its Content-Length is not a number".into()))?;
            if self.length.replace(length).is_some_and(|before| before != length) {
                return Err(ExchangeError::Malformed("it has two lengths".into()));
            }
        }
        Ok(())
    }

    /// Accepts `chunked` once and nothing else: the request asks for no other coding.
    fn read_coding(&mut self, value: &[u8]) -> Result<(), ExchangeError> {
        for coding in members(value) {
            if !is(coding, "chunked") || self.chunked {
                let coding = String::from_utf8_lossy(coding);
                let text = format!("its Transfer-Encoding `{coding}` was not asked for");
                return Err(ExchangeError::Malformed(text.into()));
            }
            self.chunked = true;
        }
        if !self.chunked {
            return Err(ExchangeError::Malformed("its Transfer-Encoding is empty".into()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &str) -> Result<ResponseHead, String> {
        let text = format!("{}\r\n\r\n", lines.replace('|', "\r\n"));
        for end in 0..text.len() {
            match read_head(&text.as_bytes()[..end]) {
                Ok(None) => {}
                Ok(Some(head)) => panic!("{head:?} of {end} bytes"),
                Err(ExchangeError::Malformed(reason)) => return Err(reason.into_owned()),
                Err(other) => panic!("{other:?}"),
            }
        }
        match read_head(text.as_bytes()) {
            Ok(Some(head)) => {
                assert_eq!(head.len, text.len());
                Ok(head)
            }
            Err(ExchangeError::Malformed(reason)) => Err(reason.into_owned()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_head_has_the_length_of_the_body_and_the_fate_of_the_connection() {
        use BodyLength::{Chunked, Length, UntilClose};
        for (lines, body, keeps_alive) in [
            ("HTTP/1.1 200 OK|Content-Length: 5", Length(5), true),
            ("HTTP/1.1 200|content-length:5", Length(5), true),
            ("HTTP/1.1 200 |content-length: \t 0012 ", Length(12), true),
            ("HTTP/1.1 200 OK|content-length: 5|CONTENT-LENGTH: 5", Length(5), true),
            ("HTTP/1.1 200 OK|content-length: 5, 5 ,5", Length(5), true),
            ("HTTP/1.1 200 OK|content-length: 5|connection: close", Length(5), false),
            ("HTTP/1.1 200 OK|content-length: 5|connection: x, Close", Length(5), false),
            (
                "HTTP/1.1 200 OK|content-length: 5|connection: keep-alive|connection: close",
                Length(5),
                false,
            ),
            ("HTTP/1.1 200 OK", UntilClose, false),
            ("HTTP/1.1 200 OK|connection: keep-alive", UntilClose, false),
            ("HTTP/1.1 200 OK|transfer-encoding: chunked", Chunked, true),
            ("HTTP/1.1 200 OK|Transfer-Encoding: , Chunked ,", Chunked, true),
            ("HTTP/1.1 200 OK|transfer-encoding: chunked|content-length: 5", Chunked, false),
            ("HTTP/1.1 200 OK|content-length: 5|transfer-encoding: chunked", Chunked, false),
            ("HTTP/1.0 200 OK|content-length: 5", Length(5), false),
            ("HTTP/1.0 200 OK|content-length: 5|connection: Keep-Alive", Length(5), true),
            ("HTTP/1.0 200 OK", UntilClose, false),
            ("HTTP/1.1 204 No Content", Length(0), true),
            ("HTTP/1.1 204 No Content|content-length: 5", Length(0), false),
            ("HTTP/1.1 304 Not Modified|content-length: 5", Length(0), false),
            ("HTTP/1.1 204 No Content|content-length: 0", Length(0), true),
            ("HTTP/1.1 204 No Content|transfer-encoding: chunked", Length(0), false),
            ("HTTP/1.1 100 Continue", Length(0), true),
            ("HTTP/1.1 101 Switching Protocols", Length(0), false),
            ("HTTP/1.1 999 Odd|content-length: 5", Length(5), true),
        ] {
            let head = head(lines).unwrap_or_else(|reason| panic!("{lines}: {reason}"));
            assert_eq!((head.body, head.keeps_alive), (body, keeps_alive), "{lines}");
        }
    }

    #[test]
    fn an_ambiguous_head_is_rejected() {
        for (lines, reason) in [
            ("HTTP/1.1 200 OK|content-length: 5|content-length: 6", "two lengths"),
            ("HTTP/1.1 200 OK|content-length: 5, 6", "two lengths"),
            ("HTTP/1.1 200 OK|content-length: ", "not a number"),
            ("HTTP/1.1 200 OK|content-length: 5,", "not a number"),
            ("HTTP/1.1 200 OK|content-length: +5", "not a number"),
            ("HTTP/1.1 200 OK|content-length: -5", "not a number"),
            ("HTTP/1.1 200 OK|content-length: 0x5", "not a number"),
            ("HTTP/1.1 200 OK|content-length: 5 5", "not a number"),
            ("HTTP/1.1 200 OK|content-length: 99999999999999999999", "not a number"),
            ("HTTP/1.1 200 OK|transfer-encoding: gzip, chunked", "`gzip`"),
            ("HTTP/1.1 200 OK|transfer-encoding: identity", "`identity`"),
            ("HTTP/1.1 200 OK|content-length: 5|transfer-encoding: ", "is empty"),
            ("HTTP/1.1 200 OK|content-length: 5|transfer-encoding: ,", "is empty"),
            ("HTTP/1.1 200 OK|transfer-encoding: chunked|transfer-encoding: chunked", "`chunked`"),
            ("HTTP/1.1 200 OK|transfer-encoding: chunked, chunked", "`chunked`"),
            ("HTTP/1.1 200 OK|transfer-encoding: chunked|transfer-encoding: gzip", "`gzip`"),
            ("HTTP/1.0 200 OK|transfer-encoding: chunked", "HTTP/1.0"),
            ("HTTP/1.1 200 OK|x-folded: a| b", "header"),
            ("HTTP/1.1 200 OK|content-length : 5", "header"),
            ("HTTP/1.1 200 OK|no colon", "header"),
            ("HTTP/2.0 200 OK", "version"),
            ("HTTP/1.1 20 OK", "status"),
            ("HTTP/1.1 099 Low", "status"),
            ("SSH-2.0-OpenSSH_9.9", "version"),
            ("220 mail.example ESMTP", "version"),
        ] {
            let refused = head(lines).unwrap_err().to_lowercase();
            assert!(refused.contains(&reason.to_lowercase()), "{lines}: {refused}");
        }
    }

    #[test]
    fn the_headers_are_counted() {
        let lines = |count| format!("HTTP/1.1 200 OK{}", "|x: y".repeat(count));
        head(&lines(MAX_HEADERS)).unwrap();
        assert!(head(&lines(MAX_HEADERS + 1)).unwrap_err().contains("more than 100"));
    }
}
