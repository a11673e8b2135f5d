//! The body of a response with server-sent events: each event with data is a message.
//!
//! Follows the event stream of the HTML standard: lines end with CR LF, LF or CR, a comment begins with a colon, and
//! an event without data is ignored. [`EventStream::next`] consumes what it has read.

use super::ServerEvent;
use super::http::{Chunk, next_chunk};

/// A response body that is read event by event.
pub(super) struct EventStream {
    framing: BodyFraming,
    /// Bytes of the body that are not a whole line yet.
    text: Vec<u8>,
    /// The data lines of the current event.
    data: Option<Vec<u8>>,
}

/// The end of the body.
pub(super) enum BodyFraming {
    Chunked,
    /// This many bytes are left.
    Length(usize),
    /// The body ends with the connection.
    UntilClose,
}

impl EventStream {
    pub(super) fn new(framing: BodyFraming) -> Self {
        Self { framing, text: Vec::new(), data: None }
    }

    /// Returns the next event, if it is complete, and the number of bytes to consume.
    pub(super) fn next(
        &mut self,
        input: &[u8],
        is_end: bool,
    ) -> Result<(Option<ServerEvent>, usize), String> {
        let mut used = 0;
        loop {
            if let Some(message) = self.message() {
                return Ok((Some(ServerEvent::Message(message)), used));
            }
            match self.piece(&input[used..])? {
                Chunk::Data(piece, length) if length > 0 => {
                    self.text.extend_from_slice(piece);
                    used += length;
                }
                Chunk::Last(length) => return Ok((Some(ServerEvent::StreamEnd), used + length)),
                Chunk::Data(..) | Chunk::Partial if is_end => {
                    return Ok((Some(ServerEvent::StreamEnd), input.len()));
                }
                Chunk::Data(..) | Chunk::Partial => return Ok((None, used)),
            }
        }
    }

    /// Returns the next bytes of the body, without the framing of HTTP.
    fn piece<'i>(&mut self, input: &'i [u8]) -> Result<Chunk<'i>, String> {
        match &mut self.framing {
            BodyFraming::Chunked => next_chunk(input),
            BodyFraming::UntilClose => Ok(Chunk::Data(input, input.len())),
            BodyFraming::Length(0) => Ok(Chunk::Last(0)),
            BodyFraming::Length(left) => {
                let length = input.len().min(*left);
                *left -= length;
                Ok(Chunk::Data(&input[..length], length))
            }
        }
    }

    /// Reads lines until an event with data is complete.
    fn message(&mut self) -> Option<Vec<u8>> {
        while let Some((line, length)) = line(&self.text) {
            let message = match field(line) {
                _ if line.is_empty() => self.data.take().filter(|data| !data.is_empty()),
                (b"data", value) => {
                    match &mut self.data {
                        Some(data) => {
                            data.push(b'\n');
                            data.extend_from_slice(value);
                        }
                        None => self.data = Some(value.to_vec()),
                    }
                    None
                }
                _ => None,
            };
            self.text.drain(..length);
            if message.is_some() {
                return message;
            }
        }
        None
    }
}

/// Returns the first line without its end, and its length with the end.
fn line(text: &[u8]) -> Option<(&[u8], usize)> {
    let at = memchr::memchr2(b'\n', b'\r', text)?;
    match (text[at], text.get(at + 1)) {
        (b'\r', Some(b'\n')) => Some((&text[..at], at + 2)),
        // A line feed may follow in the next packet.
        (b'\r', None) => None,
        _ => Some((&text[..at], at + 1)),
    }
}

/// Splits a line into its field name and value.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        Some(at) => {
            let value = &line[at + 1..];
            (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the messages, and whether the stream has ended.
    fn read(framing: BodyFraming, input: &str, piece: usize) -> (Vec<String>, bool) {
        let (mut stream, mut found) = (EventStream::new(framing), Vec::new());
        let (mut at, mut end) = (0, 0);
        loop {
            match stream.next(&input.as_bytes()[at..end], false).unwrap() {
                (Some(ServerEvent::Message(message)), used) => {
                    found.push(String::from_utf8(message).unwrap());
                    at += used;
                }
                (Some(_), _) => return (found, true),
                (None, used) => {
                    at += used;
                    if end == input.len() {
                        return (found, false);
                    }
                    end = input.len().min(end + piece);
                }
            }
        }
    }

    #[test]
    fn events_are_messages_in_pieces_of_any_size() {
        let text = ": hello\n\nid: 1\ndata:\n\nevent: message\ndata: {\"a\":1}\n\ndata:[\r\ndata: 2]\r\n\r\n";
        let chunked = format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
        for piece in [1, 7, 1000] {
            let found = vec!["{\"a\":1}".to_owned(), "[\n2]".to_owned()];
            assert_eq!(read(BodyFraming::Chunked, &chunked, piece), (found.clone(), true));
            let length = BodyFraming::Length(text.len());
            assert_eq!(read(length, text, piece), (found.clone(), true));
            assert_eq!(read(BodyFraming::UntilClose, text, piece), (found, false));
        }
    }

    #[test]
    fn an_unfinished_event_is_no_message() {
        assert_eq!(read(BodyFraming::Length(8), "data: 1\n", 1), (Vec::new(), true));
    }
}
