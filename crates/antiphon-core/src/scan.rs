//! Where does a JSON value end, and is it well formed?
//!
//! One pass over bytes that are known to be UTF-8. It builds nothing, recurses nowhere and allocates
//! only for nesting deeper than 64. The grammar is RFC 8259's, to the letter; what the grammar lets
//! through and Rust cannot hold (a lone surrogate) stays as it was written.

use std::fmt;

/// Why a text is not JSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The byte at which the text stopped being JSON.
    pub at: usize,
    /// What stood in the way.
    pub what: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for Fault {}

/// The six JSON types, named as the specification names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number of any size and precision.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// The kind of the well-formed value that starts with this byte.
    pub(crate) fn of(first: Option<&u8>) -> Self {
        match first {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "Null",
            Self::Boolean => "a Boolean",
            Self::Number => "a Number",
            Self::String => "a String",
            Self::Array => "an Array",
            Self::Object => "an Object",
        })
    }
}

/// What a fault says of a text that may be JSON and is nested too deeply.
pub(crate) const TOO_DEEP: &str = "nesting over the limit";

/// A cursor over one JSON text.
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    pos: usize,
    max_depth: usize,
    open: Nesting,
    /// Whether the String that was passed last holds an escape.
    escaped: bool,
}

impl<'a> Scanner<'a> {
    /// Starts at the first byte. Fails on bytes that are not UTF-8, which JSON is (RFC 8259, 8.1).
    pub(crate) fn new(bytes: &'a [u8], max_depth: usize) -> Result<Self, Fault> {
        // Most messages are ASCII, which is seen faster than it is validated.
        if !bytes.is_ascii() {
            if let Err(error) = std::str::from_utf8(bytes) {
                return Err(Fault { at: error.valid_up_to(), what: "invalid UTF-8" });
            }
            if bytes.starts_with(b"\xEF\xBB\xBF") {
                return Err(Fault { at: 0, what: "byte order mark" });
            }
        }
        Ok(Self { bytes, pos: 0, max_depth, open: Nesting::default(), escaped: false })
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    /// Takes the next byte if it is this one.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.pos += usize::from(found);
        found
    }

    pub(crate) fn whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.pos += 1;
        }
    }

    pub(crate) fn fault<T>(&self, what: &'static str) -> Result<T, Fault> {
        let what = if self.pos >= self.bytes.len() { "unexpected end" } else { what };
        Err(Fault { at: self.pos, what })
    }

    /// Only white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        self.whitespace();
        if self.pos < self.bytes.len() {
            self.fault("expected the end of the message")
        } else {
            Ok(())
        }
    }

    /// Enters an Object or Array whose opening bracket is next.
    pub(crate) fn enter(&mut self, object: bool) -> Result<(), Fault> {
        if self.open.depth >= self.max_depth {
            return self.fault(TOO_DEEP);
        }
        self.open.push(object);
        self.pos += 1;
        Ok(())
    }

    /// Leaves what was entered last, whose closing bracket was taken.
    pub(crate) fn leave(&mut self) {
        self.open.pop();
    }

    /// Passes one value and returns where it stood; white space before it is passed too.
    pub(crate) fn value(&mut self) -> Result<std::ops::Range<usize>, Fault> {
        self.whitespace();
        let start = self.pos;
        match self.peek() {
            Some(b'"') => drop(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.nested()?,
        }
        Ok(start..self.pos)
    }

    /// Whether the String that was passed last holds an escape.
    pub(crate) fn was_escaped(&self) -> bool {
        self.escaped
    }

    /// Passes a value of any kind, and all that is in it.
    fn nested(&mut self) -> Result<(), Fault> {
        let base = self.open.depth;
        loop {
            self.whitespace();
            match self.peek() {
                Some(b'{') => {
                    self.enter(true)?;
                    self.whitespace();
                    if self.peek() != Some(b'}') {
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.enter(false)?;
                    self.whitespace();
                    if self.peek() != Some(b']') {
                        continue;
                    }
                }
                Some(b'"') => drop(self.string()?),
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                _ => return self.fault("expected a value"),
            }
            if !self.next_member(base)? {
                return Ok(());
            }
        }
    }

    /// After a value: closes what closes here, and says whether another value follows inside.
    fn next_member(&mut self, base: usize) -> Result<bool, Fault> {
        while self.open.depth > base {
            self.whitespace();
            let object = self.open.top_is_object();
            match self.peek() {
                Some(b',') => {
                    self.pos += 1;
                    if object {
                        self.whitespace();
                        self.key()?;
                    }
                    return Ok(true);
                }
                Some(b'}') if object => self.pos += 1,
                Some(b']') if !object => self.pos += 1,
                _ if object => return self.fault("expected ',' or '}'"),
                _ => return self.fault("expected ',' or ']'"),
            }
            self.open.pop();
        }
        Ok(false)
    }

    /// Passes `"name" :` and returns the name with its quotes.
    pub(crate) fn key(&mut self) -> Result<std::ops::Range<usize>, Fault> {
        if self.peek() != Some(b'"') {
            return self.fault("expected a member name in quotes");
        }
        let name = self.string()?;
        self.whitespace();
        if !self.eat(b':') {
            return self.fault("expected ':'");
        }
        Ok(name)
    }

    /// Passes a String whose opening quote is next.
    fn string(&mut self) -> Result<std::ops::Range<usize>, Fault> {
        let start = self.pos;
        self.pos += 1;
        self.escaped = false;
        loop {
            self.pos += plain_run(&self.bytes[self.pos..]);
            match self.peek() {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(start..self.pos);
                }
                Some(b'\\') => {
                    self.escaped = true;
                    self.escape()?;
                }
                _ => return self.fault("control character in a String"),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.pos += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.pos += 1,
            Some(b'u') => {
                self.pos += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return self.fault("expected four hex digits after \\u");
                    }
                    self.pos += 1;
                }
            }
            _ => return self.fault("unknown escape in a String"),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.pos += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.pos += 1;
            }
            self.digits()?;
        }
        if let Some(b'0'..=b'9') = self.peek() {
            return self.fault("a Number may not start with 0");
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.pos;
        while let Some(b'0'..=b'9') = self.peek() {
            self.pos += 1;
        }
        if self.pos == start { self.fault("expected a digit") } else { Ok(()) }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Fault> {
        if !self.bytes[self.pos..].starts_with(word) {
            return self.fault("expected a value");
        }
        self.pos += word.len();
        Ok(())
    }
}

/// How many bytes at the front need no second look inside a String: no quote, no backslash, no
/// control character.
///
/// Short texts are told eight bytes at a time; long ones 64 at a time, in a loop that the compiler
/// makes into vector instructions.
pub(crate) fn plain_run(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    for _ in 0..4 {
        match plain_word(&mut rest) {
            Word::Plain => {}
            Word::Special(at) => return bytes.len() - rest.len() + at,
            Word::Short => return bytes.len() - rest.len() + plain_tail(rest),
        }
    }
    while let Some((block, after)) = rest.split_first_chunk::<64>()
        && !block.iter().fold(false, |any, &byte| any | is_special(byte))
    {
        rest = after;
    }
    loop {
        match plain_word(&mut rest) {
            Word::Plain => {}
            Word::Special(at) => return bytes.len() - rest.len() + at,
            Word::Short => return bytes.len() - rest.len() + plain_tail(rest),
        }
    }
}

/// What eight bytes hold.
enum Word {
    /// Nothing special; they are passed.
    Plain,
    /// Something special at this place among them.
    Special(usize),
    /// There are no eight.
    Short,
}

fn plain_word(rest: &mut &[u8]) -> Word {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let Some((chunk, after)) = rest.split_first_chunk::<8>() else { return Word::Short };
    let word = u64::from_le_bytes(*chunk);
    let zero_byte = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let quote = zero_byte(word ^ (ONES * u64::from(b'"')));
    let backslash = zero_byte(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    let special = quote | backslash | control;
    if special != 0 {
        // The lowest marked byte is exact; borrows can only mark bytes above a true one.
        return Word::Special((special.trailing_zeros() / 8) as usize);
    }
    *rest = after;
    Word::Plain
}

fn plain_tail(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

/// Which brackets are open: one bit each, 1 for an Object. The first 64 need no allocation.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &[u8], max_depth: usize) -> Result<(), Fault> {
        let mut scanner = Scanner::new(text, max_depth)?;
        scanner.value()?;
        scanner.end()
    }

    #[test]
    fn accepts_exactly_what_the_grammar_accepts() {
        for good in [
            "0",
            "-0",
            "1.50",
            "1e3",
            "-12.5E-7",
            "18446744073709551616",
            "\"\"",
            "\"\\ud800\"",
            "\"a\\u00e9\\n\"",
            "[]",
            "{}",
            "[ 1 , [ ] , { \"a\" : null } ]",
            " true\n",
            "false",
            "{\"a\":1,\"a\":2}",
            "\"\u{7f}\"",
        ] {
            assert_eq!(check(good.as_bytes(), 8), Ok(()), "{good}");
        }
        for bad in [
            "",
            " ",
            "01",
            "+1",
            "1.",
            ".5",
            "1e",
            "-",
            "NaN",
            "Infinity",
            "nul",
            "tru",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\" 1}",
            "[1 2]",
            "[",
            "{",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"a\nb\"",
            "1 2",
            "]",
            "[}",
            "{\"a\":1]",
            "'a'",
            "\u{feff}1",
            "{\"a\"}",
            "[,]",
            "--1",
        ] {
            assert!(check(bad.as_bytes(), 8).is_err(), "{bad}");
        }
    }

    #[test]
    fn depth_is_counted_across_words_of_the_bit_stack() {
        for depth in [1, 63, 64, 65, 127, 128, 129, 500] {
            let mut text = String::new();
            for level in 0..depth {
                text.push_str(if level % 3 == 0 { "{\"k\":" } else { "[" });
            }
            text.push('1');
            for level in (0..depth).rev() {
                text.push(if level % 3 == 0 { '}' } else { ']' });
            }
            assert_eq!(check(text.as_bytes(), depth), Ok(()), "{depth}");
            assert_eq!(
                check(text.as_bytes(), depth - 1).unwrap_err().what,
                "nesting over the limit"
            );
        }
    }

    /// JSON-like bytes: valid texts with a few bytes changed reach further than pure noise.
    fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\"a\"",
            "\"id\"",
            "1",
            "-0",
            "1.5e+3",
            "0",
            "true",
            "false",
            "null",
            " ",
            "\n",
            "\\u00e9",
            "\\ud800",
            "é",
            "\u{1}",
            "e",
            "\"jsonrpc\":",
            "\"a long text with more than eight bytes\"",
        ]);
        prop_oneof![
            prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..60),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn agrees_with_serde_json(text in nearly_json()) {
            let theirs = std::str::from_utf8(&text)
                .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
            prop_assert_eq!(check(&text, 100).is_ok(), theirs, "{}", String::from_utf8_lossy(&text));
        }
    }
}
