//! A body in chunks (RFC 9112, section 7.1).
//!
//! The announced size of a chunk reserves no memory: data is copied as it arrives. Extensions and
//! trailers are bounded and discarded, since the client uses none.

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderName, HeaderValue};

use super::error::ExchangeError;
use super::head::MAX_HEADERS;

/// The largest sum of extensions and trailers, in bytes.
const MAX_OVERHEAD: usize = 16 * 1024;

/// Decodes one chunked body.
#[derive(Debug)]
pub(super) struct ChunkedDecoder {
    next: ChunkPart,
    body: BytesMut,
    /// The largest body, in bytes.
    limit: usize,
    /// Bytes of extensions and trailers so far.
    overhead: usize,
    trailers: usize,
}

/// The part of a chunked body that comes next.
#[derive(Clone, Copy, Debug)]
enum ChunkPart {
    /// The line with the size of a chunk.
    Size,
    /// This many bytes of a chunk.
    Data(usize),
    /// The line end after the data.
    DataEnd,
    /// A line after the last chunk.
    Trailer,
}

impl ChunkedDecoder {
    pub(super) fn new(limit: usize) -> Self {
        Self { next: ChunkPart::Size, body: BytesMut::new(), limit, overhead: 0, trailers: 0 }
    }

    /// Takes the received bytes out of `buf`. Returns the body once it is complete.
    pub(super) fn decode(&mut self, buf: &mut BytesMut) -> Result<Option<Bytes>, ExchangeError> {
        loop {
            match self.next {
                ChunkPart::Data(left) => {
                    let taken = left.min(buf.len());
                    self.body.extend_from_slice(&buf[..taken]);
                    buf.advance(taken);
                    if taken < left {
                        self.next = ChunkPart::Data(left - taken);
                        return Ok(None);
                    }
                    self.next = ChunkPart::DataEnd;
                }
                ChunkPart::DataEnd => match line_end(buf)? {
                    None => return Ok(None),
                    Some(0) => {
                        buf.advance(2);
                        self.next = ChunkPart::Size;
                    }
                    Some(_) => return Err(malformed("a chunk is longer than its size")),
                },
                ChunkPart::Size => {
                    let Some(end) = line_end(buf)? else { return Ok(None) };
                    self.decode_size(&buf[..end])?;
                    buf.advance(end + 2);
                }
                ChunkPart::Trailer => {
                    let Some(end) = line_end(buf)? else { return Ok(None) };
                    if end > 0 {
                        self.check_trailer(&buf[..end])?;
                    }
                    buf.advance(end + 2);
                    if end == 0 {
                        return Ok(Some(std::mem::take(&mut self.body).freeze()));
                    }
                }
            }
        }
    }

    fn decode_size(&mut self, line: &[u8]) -> Result<(), ExchangeError> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (digits, rest) = line.split_at(digits);
        // Spaces and tabs only: a form feed is white space in ASCII, but not in HTTP.
        let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let extension = &rest[spaces..];
        if digits.is_empty() || !(extension.is_empty() || extension.starts_with(b";")) {
            return Err(malformed("the size of a chunk is not a number"));
        }
        // Leading zeros are allowed. Digits beyond those of the largest number count as overhead.
        self.count_overhead(rest.len() + digits.len().saturating_sub(16))?;
        let size = digits.iter().try_fold(0usize, |size, digit| {
            let digit = char::from(*digit).to_digit(16)? as usize;
            size.checked_mul(16)?.checked_add(digit)
        });
        match size {
            Some(0) => self.next = ChunkPart::Trailer,
            Some(size) if size <= self.limit - self.body.len() => self.next = ChunkPart::Data(size),
            _ => return Err(ExchangeError::TooLarge(self.limit)),
        }
        Ok(())
    }

    fn check_trailer(&mut self, line: &[u8]) -> Result<(), ExchangeError> {
        self.count_overhead(line.len())?;
        self.trailers += 1;
        if self.trailers > MAX_HEADERS {
            return Err(too_much_overhead());
        }
        if is_field(line) { Ok(()) } else { Err(malformed("a trailer is not a header")) }
    }

    fn count_overhead(&mut self, bytes: usize) -> Result<(), ExchangeError> {
        self.overhead += bytes;
        if self.overhead > MAX_OVERHEAD { Err(too_much_overhead()) } else { Ok(()) }
    }
}

/// Returns the length of the first line without its CR LF. A CR or an LF alone is an error.
fn line_end(buf: &[u8]) -> Result<Option<usize>, ExchangeError> {
    match buf.iter().position(|&byte| byte == b'\r' || byte == b'\n') {
        None if buf.len() > MAX_OVERHEAD => Err(too_much_overhead()),
        None => Ok(None),
        Some(at) => match (buf[at], buf.get(at + 1)) {
            (b'\r', None) => Ok(None),
            (b'\r', Some(b'\n')) => Ok(Some(at)),
            _ => Err(malformed("a line of its chunks ends in CR or LF alone")),
        },
    }
}

fn is_field(line: &[u8]) -> bool {
    let colon = line.iter().position(|&byte| byte == b':').unwrap_or_default();
    HeaderName::from_bytes(&line[..colon]).is_ok()
        && HeaderValue::from_bytes(&line[colon..]).is_ok()
}

fn malformed(reason: &'static str) -> ExchangeError {
    ExchangeError::Malformed(reason.into())
}

fn too_much_overhead() -> ExchangeError {
    malformed("its chunks have too many extensions or trailers")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a text in pieces of this size. Returns the body and the bytes after it.
    fn read(text: &[u8], piece: usize) -> Result<(Bytes, Vec<u8>), ExchangeError> {
        let mut chunked = ChunkedDecoder::new(1_000);
        let mut buf = BytesMut::new();
        let mut pieces = text.chunks(piece);
        for piece in pieces.by_ref() {
            buf.extend_from_slice(piece);
            if let Some(body) = chunked.decode(&mut buf)? {
                return Ok((body, [&buf[..], &pieces.collect::<Vec<_>>().concat()].concat()));
            }
        }
        Err(ExchangeError::BrokeOff("".into()))
    }

    #[test]
    fn chunks_become_one_body() {
        for (text, body) in [
            ("0\r\n\r\n", ""),
            ("5\r\nhello\r\n0\r\n\r\n", "hello"),
            ("5\r\nhello\r\n1\r\n \r\n00A\r\n0123456789\r\n000\r\n\r\n", "hello 0123456789"),
            ("3;a=b\r\n\r\n\r\r\n0;last\r\n\r\n", "\r\n\r"),
            ("3 ;a=\"b;c\"\r\nabc\r\n0 \t\r\n\r\n", "abc"),
            ("1\r\nx\r\n0\r\nExpires: never\r\nX: \r\n\r\n", "x"),
        ] {
            for piece in 1..=text.len() {
                let (whole, rest) = read(text.as_bytes(), piece).unwrap();
                assert_eq!((&whole[..], rest), (body.as_bytes(), vec![]), "{text:?} by {piece}");
            }
            let (_, rest) = read(format!("{text}HTTP/").as_bytes(), 1_000).unwrap();
            assert_eq!(rest, b"HTTP/");
        }
    }

    #[test]
    fn malformed_chunks_are_rejected() {
        for text in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "0x1\r\na\r\n0\r\n\r\n",
            "1 1\r\na\r\n0\r\n\r\n",
            "1\x0c;b\r\na\r\n0\r\n\r\n",
            "1\na\r\n0\r\n\r\n",
            "1\rxa\r\n0\r\n\r\n",
            "1;a\nb\r\nx\r\n0\r\n\r\n",
            "1\r\nab\r\n0\r\n\r\n",
            "1\r\na\n0\r\n\r\n",
            "0\r\nX: y\nZ: w\r\n\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\n: no name\r\n\r\n",
            "0\r\nX: y\r\n folded: z\r\n\r\n",
        ] {
            for piece in 1..=text.len() {
                let refused = read(text.as_bytes(), piece).unwrap_err();
                assert!(
                    matches!(refused, ExchangeError::Malformed(_)),
                    "{text:?} by {piece}: {refused:?}"
                );
            }
        }
    }

    #[test]
    fn everything_is_bounded() {
        for text in ["3e9\r\n", "fffffffffffffffff\r\n", "1\r\nx\r\n3e8\r\n"] {
            let refused = read(text.as_bytes(), 1_000).unwrap_err();
            assert!(matches!(refused, ExchangeError::TooLarge(1_000)), "{text:?}: {refused:?}");
        }
        let much = "x".repeat(MAX_OVERHEAD);
        for text in [
            format!("1;{much}\r\n"),
            format!("1;{much}"),
            format!("0{much}"),
            format!("0\r\nx{much}"),
            format!("0\r\n{}", "a: b\r\n".repeat(MAX_OVERHEAD / 4 + 1)),
            "1;abc\r\nx\r\n".repeat(MAX_OVERHEAD / 4 + 1),
            format!("0\r\n{}\r\n", "a:\r\n".repeat(MAX_HEADERS + 1)),
        ] {
            let refused = read(text.as_bytes(), 4_096).unwrap_err();
            let refused_as =
                matches!(refused, ExchangeError::Malformed(_) | ExchangeError::TooLarge(_));
            assert!(refused_as, "{}: {refused:?}", &text[..9]);
        }
        // The largest body that is allowed.
        let most = format!("3e8\r\n{}\r\n0\r\n\r\n", "x".repeat(1_000));
        assert_eq!(read(most.as_bytes(), 100).unwrap().0.len(), 1_000);
    }
}
