//! The message to send: one request, or a batch of them, in which only the ids change.

use antiphon::Params;
use antiphon::core::{Method, Notification};
use bytes::BytesMut;

/// A text of this size is written without a copy.
const LARGE: usize = 16 << 10;

/// A request or batch without its ids.
#[derive(Debug)]
pub(super) struct RequestTemplate {
    /// One call up to its id. It contains no newline, since that would end a message of line framing.
    head: Vec<u8>,
    /// Calls per message.
    pub(super) calls: u64,
    /// Whether the message is an Array, even for one call.
    pub(super) is_batch: bool,
}

impl RequestTemplate {
    pub(super) fn new(method: &str, params: Option<Params>, batch: Option<usize>) -> Self {
        let mut text = BytesMut::new();
        Notification { method: Method::new(method), params, trace: None }.encode(&mut text);
        // A request is a notification with an id.
        text.truncate(text.len() - 1);
        text.extend_from_slice(b",\"id\":");
        // In JSON an unescaped newline can only be white space.
        let space = |byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
        let head = text.into_iter().map(space).collect();
        Self { head, calls: batch.unwrap_or(1) as u64, is_batch: batch.is_some() }
    }

    /// Returns the length of the next message.
    pub(super) fn length(&self, ids: &Ids) -> usize {
        let (first, last) = (ids.next, ids.next + self.calls - 1);
        let calls = self.calls as usize;
        let digits = match width(first) {
            same if same == width(last) => same * calls,
            _ => (first..=last).map(width).sum(),
        };
        let brackets = if self.is_batch { calls + 1 } else { 0 };
        (self.head.len() + 1) * calls + digits + brackets
    }

    /// Returns the text that all messages share if it is large, else an empty slice.
    pub(super) fn shared(&self) -> &[u8] {
        if self.is_batch || self.head.len() < LARGE { &[] } else { &self.head }
    }

    /// Appends the part of the next message after the shared text.
    pub(super) fn write_rest(&self, ids: &mut Ids, out: &mut Vec<u8>) {
        out.extend_from_slice(ids.text());
        out.push(b'}');
        ids.advance();
    }

    /// Appends the next message.
    pub(super) fn write(&self, ids: &mut Ids, out: &mut Vec<u8>) {
        for call in 0..self.calls {
            if self.is_batch {
                out.push(if call == 0 { b'[' } else { b',' });
            }
            out.extend_from_slice(&self.head);
            self.write_rest(ids, out);
        }
        if self.is_batch {
            out.push(b']');
        }
    }
}

fn width(id: u64) -> usize {
    id.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// The ids of a connection, from 1. They are kept as decimal text, so no id is converted.
#[derive(Debug)]
pub(super) struct Ids {
    next: u64,
    digits: [u8; 20],
    /// The index of the first digit. All digits before it are 0.
    from: usize,
}

impl Ids {
    pub(super) fn new() -> Self {
        let mut digits = [b'0'; 20];
        digits[19] = b'1';
        Self { next: 1, digits, from: 19 }
    }

    fn text(&self) -> &[u8] {
        &self.digits[self.from..]
    }

    fn advance(&mut self) {
        self.next += 1;
        for (at, digit) in self.digits.iter_mut().enumerate().rev() {
            if *digit < b'9' {
                *digit += 1;
                self.from = self.from.min(at);
                return;
            }
            *digit = b'0';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_count_up_across_every_number_of_digits() {
        let mut ids = Ids::new();
        for id in 1..=12_345_u64 {
            assert_eq!((ids.next, ids.text()), (id, id.to_string().as_bytes()));
            ids.advance();
        }
    }

    #[test]
    fn the_length_of_a_message_is_exact() {
        let params = || Some(Params::parse("[1,\n\"a\"]").unwrap());
        for batch in [None, Some(1), Some(7), Some(300)] {
            let request = RequestTemplate::new("m", params(), batch);
            let mut ids = Ids::new();
            for _ in 0..20 {
                let (length, mut out) = (request.length(&ids), Vec::new());
                request.write(&mut ids, &mut out);
                assert_eq!(out.len(), length);
            }
        }
        let (request, mut out) = (RequestTemplate::new("m", params(), None), Vec::new());
        request.write(&mut Ids::new(), &mut out);
        assert_eq!(out, br#"{"jsonrpc":"2.0","method":"m","params":[1, "a"],"id":1}"#);
        let (request, mut out) = (RequestTemplate::new("m", None, Some(2)), Vec::new());
        request.write(&mut Ids::new(), &mut out);
        let expected =
            r#"[{"jsonrpc":"2.0","method":"m","id":1},{"jsonrpc":"2.0","method":"m","id":2}]"#;
        assert_eq!(out, expected.as_bytes());
    }
}
