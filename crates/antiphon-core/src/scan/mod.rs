//! The JSON scanner: it finds the end of a value and checks that the value is well formed.
//!
//! The scanner never builds a value, never recurses, and allocates only for nesting deeper than 64. The
//! grammar is exactly RFC 8259. Text that the grammar allows and a `str` cannot hold (an escaped lone
//! surrogate) stays as it was received.
//!
//! Invariant: each byte is scanned once. In the same pass the scanner finds out whether all bytes are
//! ASCII.

mod kind;
mod swar;

use std::fmt;
use std::ops::Range;

pub use kind::JsonKind;
use swar::{HIGHS, digits_in};
pub(crate) use swar::{plain_run, special_in};

/// The reason why a text is not JSON, and its position.
///
/// ```
/// use antiphon_core::RawJson;
///
/// let error = RawJson::parse("[1,]").unwrap_err();
/// assert_eq!(error.at, 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyntaxError {
    /// The byte at which the text stopped being JSON.
    pub at: usize,
    /// The reason.
    pub what: &'static str,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for SyntaxError {}

/// The reason for a text that is nested too deeply. It may still be JSON.
pub(crate) const TOO_DEEP: &str = "nesting over the limit";

/// Scans one JSON text. The scanner stores no position: each step takes the start and returns the end, so
/// that the position stays in a register. `None` means failure; `error` returns the reason.
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    max_depth: usize,
    /// A String with an escape was scanned.
    escaped: bool,
    /// The bitwise OR of all words of Strings: without a high bit, all Strings are ASCII. Outside of
    /// Strings, JSON allows ASCII only.
    words: u64,
    error: SyntaxError,
}

impl<'a> Scanner<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], max_depth: usize) -> Self {
        let error = SyntaxError { at: 0, what: "" };
        Self { bytes, max_depth, escaped: false, words: 0, error }
    }

    /// The reason why a step failed.
    #[cold]
    pub(crate) fn error(&self) -> SyntaxError {
        match std::str::from_utf8(self.bytes) {
            Err(error) => SyntaxError { at: error.valid_up_to(), what: "invalid UTF-8" },
            Ok(text) if text.starts_with('\u{FEFF}') => {
                SyntaxError { at: 0, what: "byte order mark" }
            }
            Ok(_) => self.error,
        }
    }

    /// Whether a String with an escape was scanned.
    #[inline]
    pub(crate) fn escaped(&self) -> bool {
        self.escaped
    }

    #[cold]
    pub(crate) fn fail(&mut self, at: usize, what: &'static str) -> Option<usize> {
        let what = if at >= self.bytes.len() { "unexpected end" } else { what };
        self.error = SyntaxError { at, what };
        None
    }

    #[inline]
    pub(crate) fn peek(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// Skips white space.
    #[inline]
    pub(crate) fn space(&self, mut at: usize) -> usize {
        while let Some(..=b' ') = self.peek(at)
            && let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek(at)
        {
            at += 1;
        }
        at
    }

    /// Skips this byte, and fails for any other.
    #[inline]
    pub(crate) fn expect(&mut self, at: usize, byte: u8, what: &'static str) -> Option<usize> {
        if self.peek(at) == Some(byte) { Some(at + 1) } else { self.fail(at, what) }
    }

    /// Scans the whole text, which must be one value, and returns the range of the value.
    pub(crate) fn text(&mut self) -> Result<Range<usize>, SyntaxError> {
        let start = self.space(0);
        match self.value(start, 0) {
            Some(end) if self.end(end).is_some() => Ok(start..end),
            _ => Err(self.error()),
        }
    }

    /// Checks that only white space follows, and that the whole text is UTF-8 (RFC 8259, 8.1).
    pub(crate) fn end(&mut self, at: usize) -> Option<usize> {
        let at = self.space(at);
        if at < self.bytes.len() {
            return self.fail(at, "expected the end of the message");
        }
        // Most messages are ASCII. The scan has found that out, so they skip this check.
        if self.words & HIGHS != 0 && std::str::from_utf8(self.bytes).is_err() {
            return None;
        }
        Some(at)
    }

    /// Skips an opening bracket that has this many others around it.
    #[inline]
    pub(crate) fn enter(&mut self, at: usize, depth: usize) -> Option<usize> {
        if depth < self.max_depth { Some(at + 1) } else { self.fail(at, TOO_DEEP) }
    }

    /// Returns the end of an empty Object, given the position after its opening brace; `None` if it has
    /// members.
    pub(crate) fn empty(&self, at: usize) -> Option<usize> {
        let at = self.space(at);
        (self.peek(at) == Some(b'}')).then_some(at + 1)
    }

    /// Scans a value that has this many brackets around it.
    #[inline(always)]
    pub(crate) fn value(&mut self, at: usize, depth: usize) -> Option<usize> {
        match self.peek(at) {
            Some(b'"') => self.string(at),
            Some(b'-' | b'0'..=b'9') => self.number(at),
            _ => self.nested(at, depth),
        }
    }

    /// Scans a value of any kind, nested values included.
    #[inline(never)]
    fn nested(&mut self, mut at: usize, depth: usize) -> Option<usize> {
        let mut open = Nesting::default();
        loop {
            match self.peek(at) {
                Some(b'{') => {
                    at = self.enter(at, depth + open.depth)?;
                    at = self.space(at);
                    open.push(true);
                    if self.peek(at) != Some(b'}') {
                        at = self.key(at)?;
                        continue;
                    }
                }
                Some(b'[') => {
                    at = self.enter(at, depth + open.depth)?;
                    at = self.space(at);
                    open.push(false);
                    if self.peek(at) != Some(b']') {
                        continue;
                    }
                }
                Some(b'"') => at = self.string(at)?,
                Some(b'-' | b'0'..=b'9') => at = self.number(at)?,
                Some(b't') => at = self.literal(at, b"true")?,
                Some(b'f') => at = self.literal(at, b"false")?,
                Some(b'n') => at = self.literal(at, b"null")?,
                _ => return self.fail(at, "expected a value"),
            }
            // After a value: skip all closing brackets that follow.
            loop {
                if open.depth == 0 {
                    return Some(at);
                }
                at = self.space(at);
                match (self.peek(at), open.top_is_object()) {
                    (Some(b','), true) => {
                        let name = self.space(at + 1);
                        at = self.key(name)?;
                        break;
                    }
                    (Some(b','), false) => {
                        at = self.space(at + 1);
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => at += 1,
                    (_, true) => return self.fail(at, "expected ',' or '}'"),
                    (_, false) => return self.fail(at, "expected ',' or ']'"),
                }
                open.pop();
            }
        }
    }

    /// Scans `"name" :` and the white space around it.
    fn key(&mut self, at: usize) -> Option<usize> {
        let end = self.name(at)?;
        self.colon(end)
    }

    /// Scans a member's name.
    #[inline]
    pub(crate) fn name(&mut self, at: usize) -> Option<usize> {
        if self.peek(at) != Some(b'"') {
            return self.fail(at, "expected a member name in quotes");
        }
        self.string(at)
    }

    /// Skips the colon after a name and the white space around it.
    #[inline]
    pub(crate) fn colon(&mut self, at: usize) -> Option<usize> {
        let at = self.space(at);
        let at = self.expect(at, b':', "expected ':'")?;
        Some(self.space(at))
    }

    /// Scans a String whose opening quote is at `at`. Most Strings are names and short words, which end
    /// within 16 bytes.
    #[inline(always)]
    fn string(&mut self, at: usize) -> Option<usize> {
        for start in [at + 1, at + 9] {
            let Some(word) = self.bytes.get(start..).and_then(<[u8]>::first_chunk::<8>) else {
                break;
            };
            self.words |= u64::from_le_bytes(*word);
            if let Some(end) = special_in(word) {
                if word[end & 7] == b'"' {
                    return Some(start + end + 1);
                }
                break;
            }
        }
        self.long_string(at + 1)
    }

    #[inline(never)]
    fn long_string(&mut self, mut at: usize) -> Option<usize> {
        loop {
            at += plain_run(&self.bytes[at.min(self.bytes.len())..], &mut self.words);
            match self.peek(at) {
                Some(b'"') => return Some(at + 1),
                Some(b'\\') => {
                    self.escaped = true;
                    at = self.escape(at + 1)?;
                }
                _ => return self.fail(at, "control character in a String"),
            }
        }
    }

    fn escape(&mut self, mut at: usize) -> Option<usize> {
        match self.peek(at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Some(at + 1),
            Some(b'u') => {
                for _ in 0..4 {
                    at += 1;
                    if !self.peek(at).is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return self.fail(at, "expected four hex digits after \\u");
                    }
                }
                Some(at + 1)
            }
            _ => self.fail(at, "unknown escape in a String"),
        }
    }

    /// Scans a Number. Most have only a few digits.
    #[inline(always)]
    fn number(&mut self, at: usize) -> Option<usize> {
        if let Some(word) = self.bytes.get(at..).and_then(<[u8]>::first_chunk::<8>)
            && let Some(digits) = digits_in(word)
            && digits > 0
            && (digits == 1 || word[0] != b'0')
            && !matches!(word[digits & 7], b'.' | b'e' | b'E')
        {
            return Some(at + digits);
        }
        self.any_number(at)
    }

    #[inline(never)]
    fn any_number(&mut self, mut at: usize) -> Option<usize> {
        at += usize::from(self.peek(at) == Some(b'-'));
        at = if self.peek(at) == Some(b'0') { at + 1 } else { self.digits(at)? };
        if self.peek(at) == Some(b'.') {
            at = self.digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.peek(at) {
            at += 1;
            at += usize::from(matches!(self.peek(at), Some(b'+' | b'-')));
            at = self.digits(at)?;
        }
        match self.peek(at) {
            Some(b'0'..=b'9') => self.fail(at, "a Number may not start with 0"),
            _ => Some(at),
        }
    }

    fn digits(&mut self, start: usize) -> Option<usize> {
        let mut at = start;
        while let Some(b'0'..=b'9') = self.peek(at) {
            at += 1;
        }
        if at == start { self.fail(at, "expected a digit") } else { Some(at) }
    }

    fn literal(&mut self, at: usize, word: &[u8]) -> Option<usize> {
        if self.bytes[at..].starts_with(word) {
            Some(at + word.len())
        } else {
            self.fail(at, "expected a value")
        }
    }
}

/// The stack of open brackets: one bit each, 1 for an Object. The first 64 need no allocation.
#[derive(Default)]
struct Nesting {
    depth: usize,
    top: u64,
    below: Vec<u64>,
}

impl Nesting {
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.below.push(self.top);
        }
        self.top = (self.top << 1) | u64::from(object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.top >>= 1;
        if self.depth > 0
            && self.depth.is_multiple_of(64)
            && let Some(word) = self.below.pop()
        {
            self.top = word;
        }
    }

    fn top_is_object(&self) -> bool {
        self.top & 1 == 1
    }
}

#[cfg(test)]
mod tests;
