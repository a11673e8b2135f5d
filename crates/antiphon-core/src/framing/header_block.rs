//! One header block, and the length of the body that it announces.
//!
//! This module never reads past the block, and ignores every header except `Content-Length`.
//!
//! Invariant: a block is consumed line by line and never exceeds its maximum size, so the buffer holds at
//! most one line of it.

use bytes::{Buf, BytesMut};
use memchr::memchr;

/// The maximum size of a block. A normal block has a few dozen bytes; a peer that sends more uses another
/// protocol.
const MAX_BLOCK: usize = 8 * 1024;
/// The most bytes of a line that an error quotes.
const MAX_EXCERPT: usize = 40;
const CONTENT_LENGTH: &[u8] = b"content-length";

/// The reason why a header block is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// A line is not a header.
    #[error("{line:?} is not a header; send lines of the form \"Name: value\"")]
    NotAHeader {
        /// The beginning of the line.
        line: String,
    },
    /// The length is not a number of bytes.
    #[error("Content-Length is {value:?}; send decimal digits, below 2^64")]
    BadLength {
        /// The beginning of the value.
        value: String,
    },
    /// The block has two different lengths.
    #[error("Content-Length is both {first} and {second}; send it once")]
    TwoLengths {
        /// The first length.
        first: u64,
        /// The second length.
        second: u64,
    },
    /// The block has no length.
    #[error("Content-Length is missing; send it in every block")]
    NoLength,
    /// The block is longer than the maximum.
    #[error("the block is longer than {limit} bytes; end it with an empty line")]
    TooLong {
        /// The maximum in bytes.
        limit: usize,
    },
}

/// A header block in progress. Each line is consumed as soon as it is complete.
#[derive(Debug, Default)]
pub(super) struct HeaderBlock {
    length_so_far: usize,
    /// The number of bytes at the front of the buffer that are known to have no newline.
    scanned: usize,
    content_length: Option<u64>,
}

impl HeaderBlock {
    /// Reads to the end of the block, and returns the length of its body; `None` if more bytes are
    /// needed.
    pub(super) fn read(&mut self, buf: &mut BytesMut) -> Result<Option<u64>, HeaderError> {
        while let Some(end) = self.line_end(buf)? {
            let outcome = self.line(trim_newline(buf.get(..end).unwrap_or_default()), end);
            buf.advance(end);
            if let Some(length) = outcome? {
                return Ok(Some(length));
            }
        }
        Ok(None)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.length_so_far > 0
    }

    fn line_end(&mut self, buf: &mut BytesMut) -> Result<Option<usize>, HeaderError> {
        let room = MAX_BLOCK - self.length_so_far;
        let seen = buf.len().min(room);
        if let Some(at) = memchr(b'\n', buf.get(self.scanned..seen).unwrap_or_default()) {
            return Ok(Some(std::mem::take(&mut self.scanned) + at + 1));
        }
        if seen == room {
            buf.advance(room);
            return Err(HeaderError::TooLong { limit: MAX_BLOCK });
        }
        self.scanned = seen;
        Ok(None)
    }

    /// Reads one line, which has `size` bytes with its newline. An empty line ends the block, unless
    /// the block has not begun.
    fn line(&mut self, line: &[u8], size: usize) -> Result<Option<u64>, HeaderError> {
        if !line.is_empty() {
            self.length_so_far += size;
            self.header(line)?;
            Ok(None)
        } else if self.has_begun() {
            self.content_length.map(Some).ok_or(HeaderError::NoLength)
        } else {
            Ok(None)
        }
    }

    fn header(&mut self, line: &[u8]) -> Result<(), HeaderError> {
        let (name, value) =
            split_header(line).ok_or_else(|| HeaderError::NotAHeader { line: excerpt(line) })?;
        if !name.eq_ignore_ascii_case(CONTENT_LENGTH) {
            return Ok(());
        }
        let second =
            parse_length(value).ok_or_else(|| HeaderError::BadLength { value: excerpt(value) })?;
        match self.content_length.replace(second) {
            Some(first) if first != second => Err(HeaderError::TwoLengths { first, second }),
            _ => Ok(()),
        }
    }
}

fn trim_newline(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Splits a line into name and value; `None` if the name is not a token (RFC 9110, section 5.6.2), for
/// example when a peer sends bare JSON.
fn split_header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = line.split_at_checked(memchr(b':', line)?)?;
    let is_token = !name.is_empty() && name.iter().all(|&byte| is_token_byte(byte));
    is_token.then_some((name, value.get(1..)?.trim_ascii()))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Parses digits only. Rust's own parser would also accept a sign.
fn parse_length(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..MAX_EXCERPT).unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{HeaderError, MAX_BLOCK};
    use crate::framing::FrameError;
    use crate::framing::Framing::Header;
    use crate::framing::tests::{Frame, FrameFeed, expect, ok};

    fn fault(reason: HeaderError) -> Frame {
        Err(FrameError::Header { reason })
    }

    fn bad_length(value: &str) -> Frame {
        fault(HeaderError::BadLength { value: value.into() })
    }

    #[test]
    fn header_lines_are_read_leniently() {
        let input = b"\r\n\ncontent-LENGTH:\t 002 \nContent-Type: a; charset=utf-8\n\n{}";
        expect(Header, 64, input, &[ok(b"{}")]);
        expect(Header, 64, b"Content-Length:2\nContent-Length: 2\n\n{}\r\n", &[ok(b"{}")]);
    }

    #[test]
    fn a_length_is_a_number_of_bytes() {
        for value in ["", "abc", "-1", "+1", "1.0", "0x1", "1 1", "18446744073709551616"] {
            let input = format!("Content-Length: {value}\r\n\r\n{{}}Content-Length: 2\r\n\r\n[]");
            expect(Header, 64, input.as_bytes(), &[bad_length(value), ok(b"[]")]);
        }
    }

    #[test]
    fn a_length_is_required_and_unambiguous() {
        let missing = b"Content-Type: a\r\n\r\n{}CONTENT-length: 2\r\n\r\n[]";
        expect(Header, 64, missing, &[fault(HeaderError::NoLength), ok(b"[]")]);
        let two = b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]";
        let reason = HeaderError::TwoLengths { first: 1, second: 2 };
        expect(Header, 64, two, &[fault(reason), ok(b"[]")]);
    }

    #[test]
    fn a_line_of_json_is_not_a_header() {
        for line in ["{\"jsonrpc\": \"2.0\"}", "hello", ": 5", "Content-Length : 5"] {
            let input = format!("{line}\r\n\r\ncContent-Length:2\r\n\r\n[]");
            let reason = HeaderError::NotAHeader { line: line.into() };
            expect(Header, 64, input.as_bytes(), &[fault(reason), ok(b"[]")]);
        }
    }

    #[test]
    fn a_block_is_capped() {
        let long = fault(HeaderError::TooLong { limit: MAX_BLOCK });
        let lines = [b"X: y\r\n".repeat(MAX_BLOCK), b"Content-Length: 2\r\n\r\n[]".to_vec()];
        assert_eq!(
            FrameFeed::in_pieces(Header, 64, &lines.concat(), 100),
            [long.clone(), ok(b"[]")]
        );

        let mut feed = FrameFeed::new(Header, 64);
        for _ in 0..MAX_BLOCK {
            feed.push(&[b'x'; 100]);
            assert!(feed.buf.len() < MAX_BLOCK);
        }
        assert_eq!(feed.frames, [long]);
    }

    #[test]
    fn a_block_of_the_cap_itself_is_allowed() {
        let filler = MAX_BLOCK - "Content-Length: 2\r\nX: \r\n\r\n".len();
        let block = format!("Content-Length: 2\r\nX: {}\r\n\r\n{{}}", "y".repeat(filler));
        assert_eq!(FrameFeed::in_pieces(Header, 64, block.as_bytes(), 7), [ok(b"{}")]);
        let over = format!("Content-Length: 2\r\nX: {}\r\n\r\n{{}}", "y".repeat(filler + 1));
        let long = fault(HeaderError::TooLong { limit: MAX_BLOCK });
        assert_eq!(FrameFeed::in_pieces(Header, 64, over.as_bytes(), 7), [long]);
    }
}
