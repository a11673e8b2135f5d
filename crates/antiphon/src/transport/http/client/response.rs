//! Reads a response from bytes that arrive in any pieces. It never touches a socket.
//!
//! An announced length reserves no memory: a buffer grows with the bytes received, up to the limit.

use antiphon_core::framing::reserve_hint;
use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, StatusCode};

use super::chunked::ChunkedDecoder;
use super::error::ExchangeError;
use super::head::{BodyLength, ResponseHead, read_head, read_headers};
use crate::io::buffer_pool::PooledBuffer;

/// The largest sum of the final head and the informational heads before it, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// A complete response.
#[derive(Debug)]
pub(super) struct ReceivedResponse {
    pub(super) status: StatusCode,
    /// May be a part of `_buf`, and is dropped before it.
    pub(super) body: Bytes,
    /// The headers, if they were asked for.
    pub(super) headers: Option<Box<HeaderMap>>,
    _buf: BodyBuffer,
}

impl ReceivedResponse {
    /// Creates a response whose body has a buffer of its own.
    pub(super) fn new(status: StatusCode, body: Bytes) -> Self {
        Self { status, body, headers: None, _buf: BodyBuffer::default() }
    }

    pub(super) fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers: Some(Box::new(headers)), ..self }
    }

    /// Keeps the pooled buffer of the body until the response is dropped.
    pub(super) fn in_buffer(self, buf: PooledBuffer) -> Self {
        Self { _buf: BodyBuffer(buf), ..self }
    }
}

/// Returns its buffer to the pool on drop.
#[derive(Debug, Default)]
struct BodyBuffer(PooledBuffer);

impl Drop for BodyBuffer {
    fn drop(&mut self) {
        self.0.clear();
        self.0.release();
    }
}

/// The result of reading the bytes received so far.
#[derive(Debug)]
pub(super) enum ReadProgress {
    /// The response, and whether the server keeps the connection open.
    Complete(ReceivedResponse, bool),
    /// The response is incomplete; the next read should make room for this many bytes.
    Partial(usize),
}

/// Reads one response.
#[derive(Debug)]
pub(super) struct ResponseReader {
    limit: usize,
    /// Bytes of informational heads.
    heads: usize,
    /// Bytes of the current head that were searched for its end.
    searched: usize,
    /// Bytes of the current head at the last parse, which found it incomplete.
    parsed: usize,
    body: Option<(ResponseHead, BodyReader)>,
    /// The headers of the last head, if they were asked for.
    headers: Option<Box<HeaderMap>>,
}

#[derive(Debug)]
enum BodyReader {
    Length(usize),
    Chunked(Box<ChunkedDecoder>),
    UntilClose,
}

impl ResponseReader {
    /// Creates a reader for a body of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, heads: 0, searched: 0, parsed: 0, body: None, headers: None }
    }

    /// Keeps the headers of the response.
    pub(super) fn with_headers(mut self) -> Self {
        self.headers = Some(Box::default());
        self
    }

    /// Whether a part of the response was taken out of the buffer.
    pub(super) fn has_begun(&self) -> bool {
        self.heads > 0 || self.body.is_some()
    }

    /// Whether the head is complete and the body is not.
    pub(super) fn is_in_body(&self) -> bool {
        self.body.is_some()
    }

    /// Reads from the bytes received. `ended` tells whether the connection ended after them.
    pub(super) fn read(
        &mut self,
        buf: &mut BytesMut,
        ended: bool,
    ) -> Result<ReadProgress, ExchangeError> {
        loop {
            if let Some((head, body)) = &mut self.body {
                return match body.read(buf, self.limit, ended)? {
                    Some(body) => {
                        let headers = self.headers.take();
                        let response = ReceivedResponse {
                            headers,
                            ..ReceivedResponse::new(head.status, body)
                        };
                        Ok(ReadProgress::Complete(response, head.keeps_alive))
                    }
                    None if ended => Err(broke_off()),
                    None => Ok(ReadProgress::Partial(body.wanted(buf.len()))),
                };
            }
            match self.read_head(buf)? {
                Some(head) => self.begin(head, buf)?,
                None if !ended => return Ok(ReadProgress::Partial(0)),
                None if buf.is_empty() && !self.has_begun() => {
                    return Err(ExchangeError::Unanswered(None));
                }
                None => return Err(broke_off()),
            }
        }
    }

    /// Returns the head once it is complete. A head that arrives byte by byte is not parsed for each of
    /// them, but when its end is there, or when it has doubled in size.
    fn read_head(&mut self, buf: &[u8]) -> Result<Option<ResponseHead>, ExchangeError> {
        let is_known = buf.len() < 2 * self.parsed;
        let head = if is_known && !holds_end(&buf[self.searched.saturating_sub(2)..]) {
            None
        } else {
            self.parsed = buf.len();
            read_head(buf)?
        };
        self.searched = buf.len();
        let size = head.map_or(buf.len(), |head| head.len);
        if self.heads + size > MAX_HEAD {
            return Err(ExchangeError::Malformed(
                format!("its head is over {MAX_HEAD} bytes").into(),
            ));
        }
        Ok(head)
    }

    /// Continues with the body, or with the next head after an informational one (RFC 9110, section 15.2).
    fn begin(&mut self, head: ResponseHead, buf: &mut BytesMut) -> Result<(), ExchangeError> {
        if self.headers.is_some() || !head.is_plain_json {
            // Without JSON, an error names the headers that say so.
            self.headers = Some(Box::new(read_headers(&buf[..head.len])));
        }
        buf.advance(head.len);
        (self.searched, self.parsed) = (0, 0);
        if head.status.is_informational() && head.status != StatusCode::SWITCHING_PROTOCOLS {
            self.heads += head.len;
            return Ok(());
        }
        let body = match head.body {
            BodyLength::Chunked => BodyReader::Chunked(Box::new(ChunkedDecoder::new(self.limit))),
            BodyLength::UntilClose => BodyReader::UntilClose,
            BodyLength::Length(length) => match usize::try_from(length) {
                Ok(length) if length <= self.limit => BodyReader::Length(length),
                _ => return Err(ExchangeError::TooLarge(self.limit)),
            },
        };
        self.body = Some((head, body));
        Ok(())
    }
}

impl BodyReader {
    /// Returns the body once it is complete.
    fn read(
        &mut self,
        buf: &mut BytesMut,
        limit: usize,
        ended: bool,
    ) -> Result<Option<Bytes>, ExchangeError> {
        match self {
            Self::Length(0) => Ok(Some(Bytes::new())),
            Self::Length(length) if *length > buf.len() => Ok(None),
            Self::Length(length) => Ok(Some(buf.split_to(*length).freeze())),
            Self::Chunked(chunked) => chunked.decode(buf),
            Self::UntilClose if buf.len() > limit => Err(ExchangeError::TooLarge(limit)),
            Self::UntilClose => Ok(ended.then(|| buf.split().freeze())),
        }
    }

    /// Returns how many bytes the next read should make room for, when `there` bytes are received.
    fn wanted(&self, there: usize) -> usize {
        match self {
            Self::Length(length) => reserve_hint(length.saturating_sub(there), there),
            Self::Chunked(_) | Self::UntilClose => 0,
        }
    }
}

/// Whether `buf` holds an empty line. httparse accepts a line feed alone as a line end.
fn holds_end(buf: &[u8]) -> bool {
    let after = |at: usize| buf[at + 1..].strip_prefix(b"\r").unwrap_or(&buf[at + 1..]);
    (0..buf.len()).any(|at| buf[at] == b'\n' && after(at).first() == Some(&b'\n'))
}

fn broke_off() -> ExchangeError {
    ExchangeError::BrokeOff("the connection ended in the middle of it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1_000;

    /// Reads these pieces one by one. Returns the response and the bytes after it.
    fn read(pieces: &[&[u8]]) -> Result<(u16, Bytes, bool, Vec<u8>), ExchangeError> {
        let mut reader = ResponseReader::new(LIMIT);
        let mut buf = BytesMut::new();
        for (n, piece) in pieces.iter().enumerate() {
            buf.extend_from_slice(piece);
            match reader.read(&mut buf, false)? {
                ReadProgress::Complete(response, keeps_alive) => {
                    let rest = [&buf[..], &pieces[n + 1..].concat()].concat();
                    return Ok((
                        response.status.as_u16(),
                        response.body.clone(),
                        keeps_alive,
                        rest,
                    ));
                }
                ReadProgress::Partial(_) => {}
            }
        }
        match reader.read(&mut buf, true)? {
            ReadProgress::Complete(response, keeps_alive) => {
                Ok((response.status.as_u16(), response.body.clone(), keeps_alive, vec![]))
            }
            ReadProgress::Partial(_) => panic!("there is no more"),
        }
    }

    const RESPONSES: [(&str, u16, &str, bool); 8] = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", true),
        ("HTTP/1.1 200 OK\ncontent-length: 5\n\nhello", 200, "hello", true),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
             3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nx-sum: 1\r\n\r\n",
            200,
            "hello",
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhello", 200, "hello", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", false),
        ("HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n", 204, "", false),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n\
             HTTP/1.1 413 Too Much\r\ncontent-length: 2\r\n\r\nno",
            413,
            "no",
            true,
        ),
        ("\r\nHTTP/1.1 500 \r\ncontent-length: 0\r\n\r\n", 500, "", true),
    ];

    #[test]
    fn a_response_may_come_in_any_pieces() {
        for (text, status, body, keeps_alive) in RESPONSES {
            let text = text.as_bytes();
            let expected = (status, Bytes::from_static(body.as_bytes()), keeps_alive, vec![]);
            for at in 0..=text.len() {
                let (left, right) = text.split_at(at);
                assert_eq!(read(&[left, right]).unwrap(), expected, "split at {at}");
            }
            let bytes: Vec<_> = text.chunks(1).collect();
            assert_eq!(read(&bytes).unwrap(), expected);
        }
    }

    #[test]
    fn a_response_that_ends_early_broke_off() {
        for (text, status, _, keeps_alive) in RESPONSES {
            let text = text.as_bytes();
            for at in 0..text.len() {
                // A body without a length ends with the connection.
                let whole = read(&[&text[..at]]);
                match whole {
                    Ok(_) => assert!(!keeps_alive && status == 200, "{at} of {text:?}"),
                    Err(ExchangeError::Unanswered(None)) => assert_eq!(at, 0),
                    Err(ExchangeError::BrokeOff(_)) => assert!(at > 0),
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn what_follows_a_response_stays_in_the_buffer() {
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200";
        assert_eq!(read(&[text]).unwrap().3, b"HTTP/1.1 200");
    }

    #[test]
    fn a_protocol_that_nobody_asked_for_is_an_answer_without_a_body() {
        let text = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n";
        let (status, body, keeps_alive, _) = read(&[text]).unwrap();
        assert_eq!((status, &body[..], keeps_alive), (101, &b""[..], false));
    }

    #[test]
    fn a_head_that_dribbles_in_is_refused_before_its_end() {
        let text = format!("HTTP/1.1 200 OK\r\nno colon\r\n{}", "x".repeat(100));
        let mut reader = ResponseReader::new(LIMIT);
        let mut buf = BytesMut::new();
        let refused = text.bytes().find_map(|byte| {
            buf.extend_from_slice(&[byte]);
            reader.read(&mut buf, false).err()
        });
        assert!(matches!(refused, Some(ExchangeError::Malformed(_))), "{refused:?}");
    }

    #[test]
    fn the_body_is_bounded_before_it_comes() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: 9999999999999999999\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n".to_owned(),
            format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1_001)),
        ] {
            let refused = read(&[text.as_bytes()]).unwrap_err();
            assert!(matches!(refused, ExchangeError::TooLarge(LIMIT)), "{text}: {refused:?}");
        }
        let most = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}", "x".repeat(1_000));
        assert_eq!(read(&[most.as_bytes()]).unwrap().1.len(), 1_000);
    }

    #[test]
    fn an_announcement_alone_makes_no_buffer_large() {
        let mut reader = ResponseReader::new(1 << 30);
        let mut buf = BytesMut::from("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n");
        for (come, most) in [(0, 64 << 10), (100, 64 << 10), (100 << 10, 400 << 10)] {
            buf.resize(buf.len().max(come), 0);
            let Ok(ReadProgress::Partial(wanted)) = reader.read(&mut buf, false) else { panic!() };
            assert_eq!(wanted, most, "{come} have come");
            buf.truncate(come);
        }
    }

    #[test]
    fn heads_are_bounded_together() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(MAX_HEAD));
        let endless = "HTTP/1.1 100 Continue\r\n\r\n".repeat(MAX_HEAD / 25 + 1);
        for text in [long.clone(), format!("{long}\r\n\r\n"), endless] {
            for piece in [512, text.len()] {
                let pieces: Vec<_> = text.as_bytes().chunks(piece).collect();
                let refused = read(&pieces).unwrap_err();
                assert!(
                    matches!(&refused, ExchangeError::Malformed(reason) if reason.contains("over 65536")),
                    "{refused:?}"
                );
            }
        }
    }
}
