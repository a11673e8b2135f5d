//! The parser: RFC 8259, strictly, in one pass.

use std::sync::Arc;

use super::wtf8::Wtf8;
use super::{Json, JsonMembers, JsonValue, Words};

/// The nesting limit: deeper than any expected reply, and far from a stack overflow.
const MAX_DEPTH: usize = 512;

pub(super) fn parse(text: &str) -> Result<Json, String> {
    let source = Arc::new(text.to_owned());
    let mut parser = JsonParser { text, source, at: 0, depth: 0 };
    let json = parser.json()?;
    parser.space();
    match parser.peek() {
        None => Ok(json),
        Some(_) => parser.fault("the end"),
    }
}

struct JsonParser<'a> {
    text: &'a str,
    source: Arc<String>,
    at: usize,
    depth: usize,
}

impl<'a> JsonParser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault<T>(&self, wanted: &str) -> Result<T, String> {
        match self.text[self.at..].chars().next() {
            Some(found) => {
                Err(format!("not JSON: expected {wanted} at byte {}, found {found:?}", self.at))
            }
            None => Err(format!("not JSON: expected {wanted}, found the end")),
        }
    }

    fn space(&mut self) {
        self.pass(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    }

    fn pass(&mut self, is_passed: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|byte| !is_passed(*byte)).unwrap_or(rest.len());
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, wanted: u8) -> Result<(), String> {
        if self.eat(wanted) { Ok(()) } else { self.fault(&format!("{:?}", char::from(wanted))) }
    }

    fn json(&mut self) -> Result<Json, String> {
        self.space();
        match self.peek() {
            Some(b'{') => self.value(|parser| parser.nested(Self::object)),
            Some(b'[') => self.value(|parser| parser.nested(Self::array)),
            Some(b'"') => self.value(Self::string),
            Some(b'-' | b'0'..=b'9') => self.value(Self::number),
            _ => self.value(Self::word),
        }
    }

    fn value(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<JsonValue, String>,
    ) -> Result<Json, String> {
        let start = self.at;
        let value = read(self)?;
        Ok(Json { source: Arc::clone(&self.source), range: start..self.at, value })
    }

    fn nested(
        &mut self,
        inner: fn(&mut Self) -> Result<JsonValue, String>,
    ) -> Result<JsonValue, String> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        let value = inner(self);
        self.depth -= 1;
        value
    }

    fn array(&mut self) -> Result<JsonValue, String> {
        let mut items = Vec::new();
        self.space();
        if self.eat(b']') {
            return Ok(JsonValue::Array(Arc::new(items)));
        }
        loop {
            items.push(self.json()?);
            self.space();
            if !self.eat(b',') {
                self.expect(b']')?;
                return Ok(JsonValue::Array(Arc::new(items)));
            }
        }
    }

    fn object(&mut self) -> Result<JsonValue, String> {
        let mut members = Vec::new();
        self.space();
        if !self.eat(b'}') {
            loop {
                members.push(self.member()?);
                self.space();
                if !self.eat(b',') {
                    self.expect(b'}')?;
                    break;
                }
            }
        }
        Ok(JsonValue::Object(Arc::new(JsonMembers::new(members)?)))
    }

    fn member(&mut self) -> Result<(Json, Json), String> {
        self.space();
        let name = self.value(Self::string)?;
        self.space();
        self.expect(b':')?;
        Ok((name, self.json()?))
    }

    fn string(&mut self) -> Result<JsonValue, String> {
        self.expect(b'"')?;
        let plain = self.plain();
        if self.eat(b'"') {
            return Ok(JsonValue::String(Words::Plain));
        }
        let mut words = Wtf8::from(plain);
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => words.push(self.escape()?),
                _ => return self.fault("'\"'"),
            }
            words.extend(self.plain());
        }
        self.at += 1;
        Ok(JsonValue::String(Words::Escaped(Arc::new(words.end()))))
    }

    /// Returns the characters up to the next quote, backslash or control character.
    fn plain(&mut self) -> &'a str {
        let start = self.at;
        self.pass(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
        &self.text[start..self.at]
    }

    fn escape(&mut self) -> Result<u16, String> {
        self.at += 1;
        let unit = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte.into(),
            Some(b'b') => 0x08,
            Some(b'f') => 0x0C,
            Some(b'n') => 0x0A,
            Some(b'r') => 0x0D,
            Some(b't') => 0x09,
            Some(b'u') => return self.unit(),
            _ => return self.fault("an escape"),
        };
        self.at += 1;
        Ok(unit)
    }

    fn unit(&mut self) -> Result<u16, String> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return self.fault("a hex digit");
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<JsonValue, String> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Ok(JsonValue::Number)
    }

    fn digits(&mut self) -> Result<(), String> {
        let start = self.at;
        self.pass(|byte| byte.is_ascii_digit());
        if self.at == start { self.fault("a digit") } else { Ok(()) }
    }

    fn word(&mut self) -> Result<JsonValue, String> {
        let words = [
            ("null", JsonValue::Null),
            ("true", JsonValue::Boolean(true)),
            ("false", JsonValue::Boolean(false)),
        ];
        for (word, value) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.fault("a value")
    }
}
