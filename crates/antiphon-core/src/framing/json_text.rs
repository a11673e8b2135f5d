//! Finds the end of one JSON text in a buffer, for line framing and value framing.
//!
//! This module does not validate: it counts brackets without matching them, and ignores the bytes between
//! them. That finds the end of every valid text. The decoder rejects invalid texts.
//!
//! Invariant: each byte is scanned once. A text starts at the front of the buffer, and its first
//! `scanned` bytes are never read again.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use super::{DeframeStep, FrameError};
use crate::scan::{plain_run, special_in};

/// The unfinished text at the front of the buffer, if there is one.
#[derive(Debug)]
pub(super) struct PartialText {
    max_frame: usize,
    delimiter: Option<Delimiter>,
    scanned: usize,
    dropping: bool,
}

/// The rule for the end of a text.
#[derive(Debug)]
pub(super) enum Delimiter {
    /// Ends at the bracket or quote that closes its first byte.
    Enclosed(BracketCounter),
    /// Ends before the next newline.
    Line,
    /// Ends before white space, or before a byte that opens an enclosed text.
    Run,
}

/// The depth of a scan in brackets, and whether it is inside a string.
#[derive(Debug)]
pub(super) struct BracketCounter {
    newline_ends: bool,
    // A skipped text has no limit, and a u64 cannot overflow by one per byte.
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl PartialText {
    pub(super) fn new(max_frame: usize) -> Self {
        Self { max_frame, delimiter: None, scanned: 0, dropping: false }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.delimiter.is_some()
    }

    /// Starts a text at the front of the buffer.
    pub(super) fn begin(&mut self, delimiter: Delimiter) {
        *self = Self { delimiter: Some(delimiter), ..Self::new(self.max_frame) };
    }

    /// Scans the new bytes in `buf`.
    pub(super) fn step(&mut self, buf: &mut BytesMut) -> DeframeStep {
        let Some(delimiter) = &mut self.delimiter else {
            return DeframeStep::Continue;
        };
        match delimiter.end(buf.get(self.scanned..).unwrap_or_default()) {
            Some(end) => self.close(self.scanned + end, buf),
            None => self.suspend(buf),
        }
    }

    /// Returns the unfinished text at the end of the stream. A text over the limit was reported before.
    pub(super) fn finish(&mut self, buf: &mut BytesMut) -> Option<Result<Bytes, FrameError>> {
        *self = Self::new(self.max_frame);
        let rest = buf.split();
        (!rest.is_empty()).then(|| Ok(rest.freeze()))
    }

    fn close(&mut self, length: usize, buf: &mut BytesMut) -> DeframeStep {
        let dropping = self.dropping;
        *self = Self::new(self.max_frame);
        if dropping || length > self.max_frame {
            buf.advance(length);
            return if dropping { DeframeStep::Continue } else { self.too_large() };
        }
        DeframeStep::Emit(Ok(buf.split_to(length).freeze()))
    }

    fn suspend(&mut self, buf: &mut BytesMut) -> DeframeStep {
        self.scanned = buf.len();
        if !self.dropping && self.scanned <= self.max_frame {
            return DeframeStep::NeedMoreBytes;
        }
        buf.clear();
        self.scanned = 0;
        let reported = std::mem::replace(&mut self.dropping, true);
        if reported { DeframeStep::NeedMoreBytes } else { self.too_large() }
    }

    fn too_large(&self) -> DeframeStep {
        DeframeStep::Emit(Err(FrameError::TooLarge { limit: self.max_frame }))
    }
}

impl Delimiter {
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Enclosed(brackets) => brackets.end(bytes),
            Self::Line => memchr(b'\n', bytes),
            Self::Run => bytes.iter().position(|&byte| is_space(byte) || opens(byte)),
        }
    }
}

impl BracketCounter {
    /// Creates a counter for a text that starts with `{`, `[` or `"`. A raw newline inside a string
    /// always ends the text, although JSON does not allow one there: so the stream recovers from a
    /// missing quote. With `newline_ends`, a newline also ends the text outside of strings.
    pub(super) fn new(newline_ends: bool) -> Self {
        Self { newline_ends, depth: 0, in_string: false, escaped: false }
    }

    /// Continues with `bytes`, and returns the length up to the end of the text if they contain it.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            if self.escaped {
                // A raw newline ends the text even after a backslash, so it is not skipped.
                at += usize::from(*bytes.get(at)? != b'\n');
                self.escaped = false;
            }
            if self.in_string {
                let text = bytes.get(at..)?;
                let near = text.first_chunk::<8>().and_then(special_in);
                at += near.unwrap_or_else(|| plain_run(text, &mut 0));
            } else {
                while !STRUCTURAL[usize::from(*bytes.get(at)?)] {
                    at += 1;
                }
            }
            let byte = *bytes.get(at)?;
            if self.ends_with(byte) {
                return Some(at + usize::from(byte != b'\n'));
            }
            at += 1;
        }
    }

    /// Counts a structural byte, and returns whether the text ends there.
    fn ends_with(&mut self, byte: u8) -> bool {
        match byte {
            b'\n' => return self.in_string || self.newline_ends,
            b'"' => self.in_string = !self.in_string,
            b'\\' if self.in_string => {
                self.escaped = true;
                return false;
            }
            // A control character: the decoder rejects it.
            _ if self.in_string => return false,
            b'{' | b'[' => self.depth += 1,
            // Depth 0 outside a string is the end of the text, so the depth is positive here.
            _ => self.depth -= 1,
        }
        self.depth == 0 && !self.in_string
    }
}

/// The bytes that a scan stops at outside strings.
const STRUCTURAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut rest: &[u8] = b"{}[]\"\n";
    while let [byte, others @ ..] = rest {
        table[*byte as usize] = true;
        rest = others;
    }
    table
};

/// White space as RFC 8259, section 2, defines it.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn opens(byte: u8) -> bool {
    matches!(byte, b'{' | b'[' | b'"')
}

/// Discards the bytes at the front for which `blank` is true, and returns the first byte for which it is
/// not.
pub(super) fn skip(buf: &mut BytesMut, blank: impl Fn(u8) -> bool) -> Option<u8> {
    let count = buf.iter().take_while(|&&byte| blank(byte)).count();
    if count > 0 {
        buf.advance(count);
    }
    buf.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &[u8]) -> Option<usize> {
        BracketCounter::new(false).end(text)
    }

    #[test]
    fn a_text_ends_with_the_bracket_that_closes_it() {
        assert_eq!(end(b"{} {}"), Some(2));
        assert_eq!(end(br#"[{"a":[1,2]},[]]1"#), Some(16));
        assert_eq!(end(b"[}{]]]"), Some(2));
        assert_eq!(end(b"[[]"), None);
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert_eq!(end(br#"["]"]"#), Some(5));
        assert_eq!(end(br#"["\"]"]"#), Some(7));
        assert_eq!(end(br#"["\\"]"#), Some(6));
        assert_eq!(end(br#"["\\\"]"]"#), Some(9));
    }

    #[test]
    fn a_string_alone_ends_with_its_quote() {
        assert_eq!(end(br#""a b"c"#), Some(5));
        assert_eq!(end(br#""a\"b"c"#), Some(6));
    }

    #[test]
    fn a_newline_in_a_string_ends_the_text_even_when_escaped() {
        assert_eq!(end(b"[\"a\n\"]"), Some(3));
        assert_eq!(end(b"[\"a\\\n\"]"), Some(4));
    }

    #[test]
    fn a_newline_between_tokens_ends_the_text_only_on_request() {
        assert_eq!(BracketCounter::new(false).end(b"[\n]"), Some(3));
        assert_eq!(BracketCounter::new(true).end(b"[\n]"), Some(1));
    }

    #[test]
    fn a_scan_resumes_at_every_byte() {
        let text = br#"{"a\\":["\"}\u005d",{"b":"]"}]}"#;
        for cut in 0..text.len() {
            let mut brackets = BracketCounter::new(true);
            assert_eq!(brackets.end(&text[..cut]), None, "cut at {cut}");
            assert_eq!(brackets.end(&text[cut..]), Some(text.len() - cut), "cut at {cut}");
        }
    }
}
