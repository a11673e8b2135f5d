//! HTTP/1.1, client side: one POST per message, responses in the order of the requests.
//!
//! A response head that equals the last one, byte by byte, is not parsed again.

use http::{HeaderName, HeaderValue};

use super::{Decoded, MAX_REPLY, ProtocolViolation, decimal, too_large};

/// The longest head of a response.
pub(crate) const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 128;

/// The HTTP/1.1 codec of one connection.
#[derive(Debug)]
pub(crate) struct HttpCodec {
    /// A request up to the digits of its `content-length`.
    request: Vec<u8>,
    /// The head of the last response with a body of known length.
    head: Vec<u8>,
    /// The length of the body after that head.
    length: usize,
    state: HttpReplyPhase,
    /// The received part of a chunked body.
    body: Vec<u8>,
    pub(crate) is_closing: bool,
}

/// The part of a response that the input starts with.
#[derive(Clone, Copy, Debug)]
enum HttpReplyPhase {
    Head,
    /// A chunked body of a response with this status.
    Chunks(u16),
    /// A body that ends with the connection.
    Rest(u16),
}

/// The length of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpBodyLength {
    Length(usize),
    Chunks,
    Rest,
}

impl HttpCodec {
    pub(crate) fn new(path: &str, host: &str, headers: &[(HeaderName, HeaderValue)]) -> Self {
        let mut request = format!("POST {path} HTTP/1.1\r\n").into_bytes();
        let own = [("host", host), ("content-type", "application/json")];
        headers_of(&own, headers, &mut request);
        request.extend_from_slice(b"content-length: ");
        let state = HttpReplyPhase::Head;
        let (head, length, body, is_closing) = (Vec::new(), 0, Vec::new(), false);
        Self { request, head, length, state, body, is_closing }
    }

    pub(crate) fn begin(&mut self, length: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.request);
        decimal(length, out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    pub(crate) fn next<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<Decoded<'a>, ProtocolViolation> {
        match self.state {
            HttpReplyPhase::Head if !self.head.is_empty() && input.starts_with(&self.head) => {
                Ok(whole(200, input, self.head.len(), self.length))
            }
            HttpReplyPhase::Head => self.head(input),
            HttpReplyPhase::Chunks(status) => self.chunk(status, input),
            HttpReplyPhase::Rest(_) if input.len() > MAX_REPLY => Err(too_large()),
            HttpReplyPhase::Rest(_) => Ok(Decoded::Starved),
        }
    }

    pub(crate) fn last<'a>(&'a mut self, input: &'a [u8]) -> Option<Decoded<'a>> {
        let HttpReplyPhase::Rest(status) = self.state else { return None };
        self.state = HttpReplyPhase::Head;
        Some(reply(status, input, input.len()))
    }

    fn head<'a>(&'a mut self, input: &'a [u8]) -> Result<Decoded<'a>, ProtocolViolation> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let at = match response.parse(input) {
            Ok(httparse::Status::Complete(at)) => at,
            Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => {
                return Ok(Decoded::Starved);
            }
            Ok(httparse::Status::Partial) => {
                return Err(ProtocolViolation("an HTTP head is too long".into()));
            }
            Err(error) => return Err(ProtocolViolation(format!("not an HTTP response: {error}"))),
        };
        let status = response.code.unwrap_or_default();
        if (100..200).contains(&status) {
            // An interim response precedes the final one (RFC 9110, section 15.2).
            return Ok(Decoded::Pass(at));
        }
        self.is_closing = closes(&response);
        match body(status, response.headers)? {
            HttpBodyLength::Length(length) => {
                if status == 200 && !self.is_closing {
                    self.head.clear();
                    self.head.extend_from_slice(&input[..at]);
                    self.length = length;
                }
                Ok(whole(status, input, at, length))
            }
            HttpBodyLength::Chunks => {
                self.body.clear();
                self.state = HttpReplyPhase::Chunks(status);
                Ok(Decoded::Pass(at))
            }
            HttpBodyLength::Rest => {
                self.is_closing = true;
                self.state = HttpReplyPhase::Rest(status);
                Ok(Decoded::Pass(at))
            }
        }
    }

    /// Reads one chunk, or the last one with the trailers (RFC 9112, section 7.1).
    fn chunk<'a>(
        &'a mut self,
        status: u16,
        input: &'a [u8],
    ) -> Result<Decoded<'a>, ProtocolViolation> {
        let broken = || ProtocolViolation("a chunk of an HTTP body is malformed".into());
        let (at, size) = match httparse::parse_chunk_size(input) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => {
                return Ok(Decoded::Starved);
            }
            _ => return Err(broken()),
        };
        if size == 0 {
            let Some(end) = trailers(&input[at..])? else { return Ok(Decoded::Starved) };
            self.state = HttpReplyPhase::Head;
            return Ok(reply(status, &self.body, at + end));
        }
        let size = usize::try_from(size).ok().filter(|size| *size <= MAX_REPLY - self.body.len());
        let end = at + size.ok_or_else(too_large)?;
        match input.get(end..end + 2) {
            None => Ok(Decoded::Starved),
            Some(b"\r\n") => {
                self.body.extend_from_slice(&input[at..end]);
                Ok(Decoded::Pass(end + 2))
            }
            Some(_) => Err(broken()),
        }
    }
}

/// Appends header lines: the named ones, and those of `own` that are not named.
pub(crate) fn headers_of(
    own: &[(&str, &str)],
    named: &[(HeaderName, HeaderValue)],
    out: &mut Vec<u8>,
) {
    for (name, value) in own.iter().filter(|(own, _)| !named.iter().any(|(name, _)| name == own)) {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    for (name, value) in named {
        out.extend_from_slice(format!("{name}: ").as_bytes());
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

fn whole(status: u16, input: &[u8], at: usize, length: usize) -> Decoded<'_> {
    match input.get(at..at + length) {
        None => Decoded::Starved,
        Some(body) => reply(status, body, at + length),
    }
}

fn reply(status: u16, body: &[u8], used: usize) -> Decoded<'_> {
    match status {
        200..300 => Decoded::Reply(body, used),
        _ => Decoded::Refusal(status, body, used),
    }
}

fn closes(response: &httparse::Response<'_, '_>) -> bool {
    let says = |word: &str| {
        let connection =
            response.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("connection"));
        let mut words = connection.flat_map(|header| header.value.split(|byte| *byte == b','));
        words.any(|found| found.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    };
    says("close") || (response.version == Some(0) && !says("keep-alive"))
}

/// Returns the length of the body (RFC 9112, section 6.3).
fn body(
    status: u16,
    headers: &[httparse::Header<'_>],
) -> Result<HttpBodyLength, ProtocolViolation> {
    if matches!(status, 204 | 304) {
        return Ok(HttpBodyLength::Length(0));
    }
    let named = |name| headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
    if let Some(coding) = named("transfer-encoding") {
        return match coding.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            true => Ok(HttpBodyLength::Chunks),
            false => {
                Err(ProtocolViolation("an HTTP body has an unsupported transfer encoding".into()))
            }
        };
    }
    let Some(length) = named("content-length") else { return Ok(HttpBodyLength::Rest) };
    length_of(length.value).map(HttpBodyLength::Length)
}

/// Parses the value of a `Content-Length`.
pub(crate) fn length_of(digits: &[u8]) -> Result<usize, ProtocolViolation> {
    let length = std::str::from_utf8(digits).ok().and_then(|digits| digits.trim().parse().ok());
    let length: usize =
        length.ok_or_else(|| ProtocolViolation("a Content-Length is not a number".into()))?;
    if length > MAX_REPLY { Err(too_large()) } else { Ok(length) }
}

/// Returns the length of the trailers; `None` while they are incomplete.
fn trailers(input: &[u8]) -> Result<Option<usize>, ProtocolViolation> {
    if input.starts_with(b"\r\n") {
        return Ok(Some(2));
    }
    match memchr::memmem::find(input, b"\r\n\r\n") {
        Some(at) => Ok(Some(at + 4)),
        None if input.len() > MAX_HEAD => {
            Err(ProtocolViolation("HTTP trailers are too long".into()))
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Codec, CodecKind, replies};
    use super::*;

    fn found(input: &str) -> Vec<String> {
        let all = |piece| {
            let mut codec = Codec(CodecKind::Http(HttpCodec::new("/", "h", &[])));
            replies(&mut codec, input.as_bytes(), piece).unwrap()
        };
        assert_eq!(all(1), all(input.len()), "{input}");
        all(3)
    }

    fn with_length(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn a_request_has_its_headers_once() {
        let header = |name: &'static str, value| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let named = [header("host", "other"), header("x-key", "1")];
        let (mut out, mut http) = (Vec::new(), HttpCodec::new("/rpc", "h:1", &named));
        http.begin(12, &mut out);
        let expected = "POST /rpc HTTP/1.1\r\ncontent-type: application/json\r\nhost: other\r\n\
                        x-key: 1\r\ncontent-length: 12\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn bodies_end_by_length_and_by_chunks() {
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n\
                       2\r\nab\r\n3;x=y\r\ncde\r\n0\r\nx-trailer: 1\r\n\r\n";
        let input = [&with_length("one"), chunked, &with_length(""), &with_length("two")].concat();
        assert_eq!(found(&input), ["one", "abcde", "", "two"]);
    }

    #[test]
    fn a_status_is_reported_and_an_interim_response_is_skipped() {
        let input = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n\
                     HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy";
        assert_eq!(found(&[input, &with_length("a")].concat()), ["", "503 busy", "a"]);
    }

    #[test]
    fn a_body_may_end_with_the_connection() {
        let mut http = HttpCodec::new("/", "h", &[]);
        assert_eq!(http.next(b"HTTP/1.1 200 OK\r\n\r\nabc"), Ok(Decoded::Pass(19)));
        assert!(http.is_closing);
        assert_eq!(http.next(b"abc"), Ok(Decoded::Starved));
        assert_eq!(http.last(b"abcd"), Some(Decoded::Reply(b"abcd", 4)));
        assert_eq!(http.last(b""), None);
    }

    #[test]
    fn a_response_announces_the_close() {
        for (head, closing) in [
            ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n", true),
            ("HTTP/1.0 200 OK\r\n", true),
            ("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n", false),
            ("HTTP/1.1 200 OK\r\n", false),
        ] {
            let (mut http, input) =
                (HttpCodec::new("/", "h", &[]), format!("{head}content-length: 0\r\n\r\n"));
            assert!(matches!(http.next(input.as_bytes()), Ok(Decoded::Reply(b"", _))));
            assert_eq!(http.is_closing, closing, "{head}");
        }
    }

    #[test]
    fn invalid_http_is_a_violation() {
        for input in [
            "{\"jsonrpc\"",
            "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
        ] {
            let mut codec = Codec(CodecKind::Http(HttpCodec::new("/", "h", &[])));
            assert!(replies(&mut codec, input.as_bytes(), 1000).is_err(), "{input}");
        }
    }
}
