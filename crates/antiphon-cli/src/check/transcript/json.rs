//! Which JSON value is this text, exactly?
//!
//! Numbers keep their text and Strings are UTF-16 code units, so `1.50` is not `1.5`, an id above
//! 2^53 stays itself, and a lone surrogate is a value like any other. It never forgives: what a
//! server sends is judged here, so a member that is there twice is a fault.

use std::collections::HashSet;
use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;

/// Deeper than any answer that a transcript expects, and far from the end of the stack.
const MAX_DEPTH: usize = 512;

/// One JSON value together with the text it was written as.
#[derive(Clone, Debug)]
pub(crate) struct Json {
    pub(crate) text: String,
    pub(crate) value: Value,
}

/// What a JSON text means.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Number(String),
    String(Vec<u16>),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { text, chars: text.char_indices().peekable(), depth: 0 };
        let json = parser.json()?;
        parser.space();
        match parser.chars.peek() {
            None => Ok(json),
            Some(_) => parser.fault("the end"),
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Json> {
        let Value::Object(members) = &self.value else {
            return None;
        };
        members.iter().find(|(other, _)| other == name).map(|(_, json)| json)
    }

    /// What it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "Null",
            Value::Boolean(_) => "a Boolean",
            Value::Number(_) => "a Number",
            Value::String(_) => "a String",
            Value::Array(_) => "an Array",
            Value::Object(_) => "an Object",
        }
    }

    pub(crate) fn is_structure(&self) -> bool {
        matches!(self.value, Value::Array(_) | Value::Object(_))
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self.value, Value::String(_))
    }

    pub(crate) fn is_integer(&self) -> bool {
        matches!(&self.value, Value::Number(text) if text.parse::<i64>().is_ok())
    }
}

/// The same value: member order is free, Numbers are their texts, Strings are their values.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::Null, Value::Null) => true,
            (Value::Boolean(one), Value::Boolean(two)) => one == two,
            (Value::Number(one), Value::Number(two)) => one == two,
            (Value::String(one), Value::String(two)) => one == two,
            (Value::Array(one), Value::Array(two)) => one == two,
            (Value::Object(one), Value::Object(two)) => {
                one.len() == two.len()
                    && one.iter().all(|(name, json)| other.member(name) == Some(json))
            }
            _ => false,
        }
    }
}

/// The text as it was written; the middle of a long one is left out.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 300;
        let chars = self.text.chars().count();
        if chars <= 2 * SHOWN {
            return f.write_str(&self.text);
        }
        let head: String = self.text.chars().take(SHOWN).collect();
        let tail: String = self.text.chars().skip(chars - SHOWN).collect();
        write!(f, "{head} ...{} characters... {tail}", chars - 2 * SHOWN)
    }
}

struct Parser<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    depth: usize,
}

impl Parser<'_> {
    fn at(&mut self) -> usize {
        self.chars.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    fn fault<T>(&mut self, wanted: &str) -> Result<T, String> {
        match self.chars.peek() {
            Some((at, found)) => {
                Err(format!("not JSON: expected {wanted} at byte {at}, found {found:?}"))
            }
            None => Err(format!("not JSON: expected {wanted}, found the end")),
        }
    }

    fn space(&mut self) {
        while self.chars.next_if(|(_, c)| matches!(c, ' ' | '\t' | '\n' | '\r')).is_some() {}
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.chars.next_if(|(_, c)| *c == wanted).is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.eat(wanted) { Ok(()) } else { self.fault(&format!("{wanted:?}")) }
    }

    fn json(&mut self) -> Result<Json, String> {
        self.space();
        let start = self.at();
        let value = match self.chars.peek().map(|(_, c)| *c) {
            Some('{') => self.nested(Self::object)?,
            Some('[') => self.nested(Self::array)?,
            Some('"') => Value::String(self.string()?),
            Some('-' | '0'..='9') => Value::Number(self.number()?),
            _ => self.word()?,
        };
        let text = self.text[start..self.at()].to_owned();
        Ok(Json { text, value })
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        self.chars.next();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        let value = inner(self);
        self.depth -= 1;
        value
    }

    fn array(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        self.space();
        if self.eat(']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.json()?);
            self.space();
            if !self.eat(',') {
                self.expect(']')?;
                return Ok(Value::Array(items));
            }
        }
    }

    fn object(&mut self) -> Result<Value, String> {
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut names = HashSet::new();
        self.space();
        if self.eat('}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            let name = String::from_utf16_lossy(&self.string()?);
            if !names.insert(name.clone()) {
                return Err(format!("the member {name:?} is there twice"));
            }
            self.space();
            self.expect(':')?;
            members.push((name, self.json()?));
            self.space();
            if !self.eat(',') {
                self.expect('}')?;
                return Ok(Value::Object(members));
            }
        }
    }

    fn string(&mut self) -> Result<Vec<u16>, String> {
        self.expect('"')?;
        let mut units = Vec::new();
        loop {
            match self.chars.next_if(|(_, c)| *c >= ' ').map(|(_, c)| c) {
                Some('"') => return Ok(units),
                Some('\\') => units.push(self.escape()?),
                Some(plain) => units.extend_from_slice(plain.encode_utf16(&mut [0; 2])),
                None => return self.fault("'\"'"),
            }
        }
    }

    fn escape(&mut self) -> Result<u16, String> {
        let plain = match self.chars.peek().map(|(_, c)| *c) {
            Some(c @ ('"' | '\\' | '/')) => c as u16,
            Some('b') => 0x08,
            Some('f') => 0x0C,
            Some('n') => 0x0A,
            Some('r') => 0x0D,
            Some('t') => 0x09,
            Some('u') => return self.unit(),
            _ => return self.fault("an escape"),
        };
        self.chars.next();
        Ok(plain)
    }

    fn unit(&mut self) -> Result<u16, String> {
        self.chars.next();
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.chars.peek().and_then(|(_, c)| c.to_digit(16)) else {
                return self.fault("a hex digit");
            };
            unit = unit << 4 | digit as u16;
            self.chars.next();
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<String, String> {
        let start = self.at();
        self.eat('-');
        if !self.eat('0') {
            self.digits()?;
        }
        if self.eat('.') {
            self.digits()?;
        }
        if self.eat('e') || self.eat('E') {
            let _sign = self.eat('+') || self.eat('-');
            self.digits()?;
        }
        Ok(self.text[start..self.at()].to_owned())
    }

    fn digits(&mut self) -> Result<(), String> {
        let start = self.at();
        while self.chars.next_if(|(_, c)| c.is_ascii_digit()).is_some() {}
        if self.at() == start { self.fault("a digit") } else { Ok(()) }
    }

    fn word(&mut self) -> Result<Value, String> {
        let at = self.at();
        let words = [
            ("null", Value::Null),
            ("true", Value::Boolean(true)),
            ("false", Value::Boolean(false)),
        ];
        for (word, value) in words {
            if self.text[at..].starts_with(word) {
                self.chars.nth(word.len() - 1);
                return Ok(value);
            }
        }
        self.fault("a value")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &str, two: &str) -> bool {
        Json::parse(one).unwrap() == Json::parse(two).unwrap()
    }

    #[test]
    fn equal_values() {
        assert!(same(r#"{"a":1,"b":[true,null]}"#, r#" { "b" : [ true , null ] , "a" : 1 } "#));
        assert!(same(r#""\u0061\/\ud83d\ude00""#, "\"a/\u{1F600}\""));
        assert!(same(r#""\ud800""#, r#""\uD800""#));
        assert!(same(r#"{"\u0061":0}"#, r#"{"a":0}"#));
    }

    #[test]
    fn different_values() {
        assert!(!same("1.50", "1.5"));
        assert!(!same("1e3", "1000"));
        assert!(!same("9007199254740993", "9007199254740992"));
        assert!(!same("1", "\"1\""));
        assert!(!same(r#""\ud800""#, r#""\ud801""#));
        assert!(!same("[1,2]", "[2,1]"));
        assert!(!same(r#"{"a":1}"#, r#"{"a":1,"b":2}"#));
        assert!(!same("null", "false"));
    }

    #[test]
    fn what_is_no_json() {
        for text in [
            "",
            " ",
            "nul",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            "-",
            "\"",
            "\"\n\"",
            "\"\\x\"",
            "{} {}",
            "{a:1}",
        ] {
            assert!(Json::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_member_twice_and_a_bomb_are_faults() {
        assert!(Json::parse(r#"{"id":1,"id":1}"#).unwrap_err().contains("twice"));
        assert!(Json::parse(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn long_texts_are_shown_short() {
        let json = Json::parse(&format!("\"{}\"", "x".repeat(10_000))).unwrap();
        assert!(json.to_string().len() < 700);
    }
}
