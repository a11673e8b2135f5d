//! Reads server-sent events from bytes, as the HTML standard defines them.
//!
//! A server cannot make the parser keep more than its limit: a longer line or event is an error.

use std::collections::VecDeque;
use std::time::Duration;

/// One event that has data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// The type; empty means `message`.
    pub(super) name: String,
    /// The data.
    pub(super) data: Vec<u8>,
}

/// A line or an event is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Reads events.
pub(super) struct EventParser {
    limit: usize,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The last byte was CR, so LF ends no further line.
    after_cr: bool,
    /// No line has ended yet, so there may be a byte order mark.
    at_start: bool,
    events: VecDeque<Event>,
    /// The id of the last event.
    pub(super) last_id: Option<String>,
    /// How long to wait before the stream is opened again.
    pub(super) retry: Option<Duration>,
}

impl EventParser {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            after_cr: false,
            at_start: true,
            events: VecDeque::new(),
            last_id: None,
            retry: None,
        }
    }

    /// Returns the next event that is complete.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Reads bytes of the stream.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + self.event.data.len() + part.len() > self.limit {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            bytes = rest;
            if let Some(end) = rest.first() {
                self.after_cr = *end == b'\r';
                bytes = &rest[1..];
                let line = std::mem::take(&mut self.line);
                self.end_line(&line);
                // Keeps the memory of the line, but not of a large one.
                if line.capacity() <= 4096 {
                    self.line = line;
                    self.line.clear();
                }
            }
        }
        Ok(())
    }

    fn end_line(&mut self, line: &[u8]) {
        let is_first = std::mem::take(&mut self.at_start);
        let line = match line.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) if is_first => rest,
            _ => line,
        };
        if line.is_empty() {
            return self.end_event();
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        self.field(field, value.strip_prefix(b" ").unwrap_or(value));
    }

    fn field(&mut self, field: &[u8], value: &[u8]) {
        match field {
            b"data" => {
                if self.has_data {
                    self.event.data.push(b'\n');
                }
                self.has_data = true;
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.last_id = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let millis = std::str::from_utf8(value).ok().and_then(|it| it.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            // A comment has an empty name. Unknown fields are ignored.
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        self.has_data = false;
        if !event.data.is_empty() {
            self.events.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a text in pieces of one size, and returns the names and data.
    fn parse(text: &str, size: usize) -> (Vec<(String, String)>, EventParser) {
        let mut parser = EventParser::new(1000);
        let mut events = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            parser.read(piece).unwrap();
            while let Some(event) = parser.next() {
                events.push((event.name, String::from_utf8(event.data).unwrap()));
            }
        }
        (events, parser)
    }

    #[test]
    fn pieces_and_line_ends_do_not_matter() {
        let text = "\u{feff}: hello\nevent: endpoint\ndata: /x?a=1\n\nid: 7\nretry: 1500\ndata:\n\n\
            data:{\"a\":\ndata: 1}\nunknown\n\nid: 8\n\ndata: unfinished";
        let expected = [("endpoint", "/x?a=1"), ("", "{\"a\":\n1}")];
        for text in [text.to_owned(), text.replace('\n', "\r\n"), text.replace('\n', "\r")] {
            for size in [1, 2, 3, 7, 1000] {
                let (events, parser) = parse(&text, size);
                let events: Vec<_> = events.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
                assert_eq!(events, expected, "{text:?} {size}");
                assert_eq!(parser.last_id.as_deref(), Some("8"));
                assert_eq!(parser.retry, Some(Duration::from_millis(1500)));
            }
        }
    }

    #[test]
    fn lines_and_events_are_limited() {
        let mut parser = EventParser::new(20);
        assert_eq!(parser.read(&[b'x'; 21]), Err(TooLong));
        let mut parser = EventParser::new(20);
        let lines = "data: 12345\n".repeat(10);
        assert_eq!(parser.read(lines.as_bytes()), Err(TooLong));
        let mut parser = EventParser::new(20);
        let events = "data: 12345\n\n".repeat(10);
        assert_eq!(parser.read(events.as_bytes()), Ok(()));
        assert_eq!(std::iter::from_fn(|| parser.next()).count(), 10);
    }

    #[test]
    fn invalid_ids_and_retries_are_ignored() {
        let (_, parser) = parse("id: a\0b\nretry: -1\n\n", 100);
        assert_eq!((parser.last_id, parser.retry), (None, None));
    }
}
