//! Raw streams: one line, one `Content-Length` block, or one JSON value per message.
//!
//! A reply is a slice of the input: it is used once, in place.

use super::super::address::StreamFraming;

use super::http::{MAX_HEAD, length_of};
use super::{Decoded, MAX_REPLY, ProtocolViolation, decimal, too_large};

const MAX_HEADERS: usize = 16;

/// The codec of one raw stream.
#[derive(Debug)]
pub(crate) struct StreamCodec {
    framing: StreamFraming,
    /// The length of the scanned input, which holds no end of a message.
    scanned: usize,
    /// The position in the JSON value at that point.
    place: JsonScan,
    /// The last header block, and the length that it announces.
    head: Vec<u8>,
    length: usize,
}

/// The state of a scan of a JSON value.
#[derive(Debug, Default)]
struct JsonScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl StreamCodec {
    pub(crate) fn new(framing: StreamFraming) -> Self {
        Self { framing, scanned: 0, place: JsonScan::default(), head: Vec::new(), length: 0 }
    }

    pub(crate) fn begin(&mut self, length: usize, out: &mut Vec<u8>) {
        if self.framing == StreamFraming::Header {
            out.extend_from_slice(b"Content-Length: ");
            decimal(length, out);
            out.extend_from_slice(b"\r\n\r\n");
        }
    }

    pub(crate) fn end(&self, out: &mut Vec<u8>) {
        if self.framing != StreamFraming::Header {
            out.push(b'\n');
        }
    }

    pub(crate) fn next<'a>(&mut self, input: &'a [u8]) -> Result<Decoded<'a>, ProtocolViolation> {
        let step = match self.framing {
            StreamFraming::Line => self.line(input),
            StreamFraming::Values => self.value(input),
            StreamFraming::Header => return self.header(input),
        };
        if step == Decoded::Starved && input.len() > MAX_REPLY {
            return Err(too_large());
        }
        Ok(step)
    }

    fn line<'a>(&mut self, input: &'a [u8]) -> Decoded<'a> {
        let Some(found) = memchr::memchr(b'\n', &input[self.scanned..]) else {
            self.scanned = input.len();
            return Decoded::Starved;
        };
        let end = std::mem::take(&mut self.scanned) + found;
        match input[..end].trim_ascii_end() {
            [] => Decoded::Pass(end + 1),
            line => Decoded::Reply(line, end + 1),
        }
    }

    fn header<'a>(&mut self, input: &'a [u8]) -> Result<Decoded<'a>, ProtocolViolation> {
        if self.head.is_empty() || !input.starts_with(&self.head) {
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let (at, headers) = match httparse::parse_headers(input, &mut headers) {
                Ok(httparse::Status::Complete(found)) => found,
                Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => {
                    return Ok(Decoded::Starved);
                }
                _ => return Err(ProtocolViolation("a header block is malformed".into())),
            };
            let length =
                headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
            let length =
                length.ok_or_else(|| ProtocolViolation("a Content-Length is missing".into()))?;
            self.length = length_of(length.value)?;
            self.head.clear();
            self.head.extend_from_slice(&input[..at]);
        }
        let (at, end) = (self.head.len(), self.head.len() + self.length);
        Ok(input.get(at..end).map_or(Decoded::Starved, |text| Decoded::Reply(text, end)))
    }

    /// Finds the end of an Object or Array. The decoder checks whether the value is valid.
    fn value<'a>(&mut self, input: &'a [u8]) -> Decoded<'a> {
        if self.scanned == 0 {
            let space = input.len() - input.trim_ascii_start().len();
            if space > 0 {
                return Decoded::Pass(space);
            }
        }
        for (at, byte) in input.iter().enumerate().skip(self.scanned) {
            if self.place.ends_with(*byte) {
                (self.scanned, self.place) = (0, JsonScan::default());
                return Decoded::Reply(&input[..=at], at + 1);
            }
        }
        self.scanned = input.len();
        Decoded::Starved
    }
}

impl JsonScan {
    /// Takes a byte. Returns true if the value ends with it. A scalar, which is not a message, ends
    /// with its line.
    fn ends_with(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            b'\n' => return self.depth == 0,
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Codec, CodecKind, replies};
    use super::*;

    fn found(framing: StreamFraming, input: &str) -> Result<Vec<String>, ProtocolViolation> {
        let all = |piece| {
            replies(
                &mut Codec(CodecKind::Stream(StreamCodec::new(framing))),
                input.as_bytes(),
                piece,
            )
        };
        assert_eq!(all(1), all(input.len()));
        all(3)
    }

    #[test]
    fn a_line_is_a_reply() {
        let input = "{\"a\":1}\n\n\r\n[2]\r\nx\n{";
        assert_eq!(found(StreamFraming::Line, input).unwrap(), ["{\"a\":1}", "[2]", "x"]);
    }

    #[test]
    fn a_header_block_announces_the_length_of_a_reply() {
        let input = "Content-Length: 3\r\n\r\nabcContent-Length: 3\r\n\r\ndef\
                     Content-Type: x\r\ncontent-length: 1\r\n\r\ng";
        assert_eq!(found(StreamFraming::Header, input).unwrap(), ["abc", "def", "g"]);
        for broken in ["X: 1\r\n\r\n", "Content-Length: -1\r\n\r\n", "{\"jsonrpc\"\r\n:\r\n\r\n"] {
            assert!(found(StreamFraming::Header, broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_value_ends_where_it_closes() {
        let input = "{\"a\":\"}\\\"]\",\"b\":[{}]}[1]\n\n {\n\"c\":[]}\n7\n{}";
        assert_eq!(
            found(StreamFraming::Values, input).unwrap(),
            ["{\"a\":\"}\\\"]\",\"b\":[{}]}", "[1]", "{\n\"c\":[]}", "7\n", "{}"]
        );
    }
}
