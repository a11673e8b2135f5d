//! A strict, lossless JSON parser.
//!
//! A Number is its text and a String is its UTF-16 code units. So `1.50` differs from `1.5`, an id above
//! 2^53 keeps its value, and a lone surrogate is a valid String. The parser is strict, because it reads
//! the messages under test: a duplicate member is an error.
//!
//! All values of one text share that text, so the cost of a nested value is linear in its length.

mod members;
mod parser;
mod wtf8;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub(crate) use self::members::{DUPLICATED, JsonMembers};

/// One JSON value and its text. A clone shares both.
#[derive(Clone)]
pub(crate) struct Json {
    source: Arc<String>,
    range: Range<usize>,
    pub(crate) value: JsonValue,
}

/// The parsed form of a JSON text. A Number is its text, see [`Json::text`].
#[derive(Clone)]
pub(crate) enum JsonValue {
    Null,
    Boolean(bool),
    Number,
    String(Words),
    Array(Arc<Vec<Json>>),
    Object(Arc<JsonMembers>),
}

/// The value of a String: its text between the quotes, unless it contains an escape.
///
/// Escapes become WTF-8, which extends UTF-8 with lone surrogates. Two Strings have equal code units if
/// and only if these bytes are equal.
#[derive(Clone)]
pub(crate) enum Words {
    Plain,
    Escaped(Arc<Vec<u8>>),
}

impl Json {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parser::parse(text)
    }

    /// Returns the text as it was written, without surrounding white space.
    pub(crate) fn text(&self) -> &str {
        &self.source[self.range.clone()]
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Json> {
        match &self.value {
            JsonValue::Object(members) => members.named(name.as_bytes()),
            _ => None,
        }
    }

    /// Returns the name of the type.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            JsonValue::Null => "Null",
            JsonValue::Boolean(_) => "a Boolean",
            JsonValue::Number => "a Number",
            JsonValue::String(_) => "a String",
            JsonValue::Array(_) => "an Array",
            JsonValue::Object(_) => "an Object",
        }
    }

    pub(crate) fn is_structure(&self) -> bool {
        matches!(self.value, JsonValue::Array(_) | JsonValue::Object(_))
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self.value, JsonValue::String(_))
    }

    pub(crate) fn is_integer(&self) -> bool {
        matches!(self.value, JsonValue::Number) && self.text().parse::<i64>().is_ok()
    }

    /// Reports whether it is a String of these characters, escaped or not.
    pub(crate) fn is_text(&self, text: &str) -> bool {
        self.is_string() && self.words() == text.as_bytes()
    }

    /// Returns the characters of a String, with U+FFFD for lone surrogates.
    pub(crate) fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.words())
    }

    /// Returns the WTF-8 bytes of a String; for any other value, nothing.
    fn words(&self) -> &[u8] {
        match &self.value {
            JsonValue::String(Words::Plain) => {
                &self.source.as_bytes()[self.range.start + 1..self.range.end - 1]
            }
            JsonValue::String(Words::Escaped(words)) => words,
            _ => b"",
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (JsonValue::Null, JsonValue::Null) => true,
            (JsonValue::Boolean(one), JsonValue::Boolean(two)) => one == two,
            (JsonValue::Number, JsonValue::Number) => self.text() == other.text(),
            (JsonValue::String(_), JsonValue::String(_)) => self.words() == other.words(),
            (JsonValue::Array(one), JsonValue::Array(two)) => {
                one.len() == two.len() && one.iter().zip(&**two).all(|(one, two)| one.is_same(two))
            }
            (JsonValue::Object(one), JsonValue::Object(two)) => one.is_same(two),
            _ => false,
        }
    }
}

/// Compares values: member order is free, Numbers are texts, Strings are code units.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        // Compares the texts of the outermost values only. At every level, the cost would be depth times
        // length.
        self.text() == other.text() || self.is_same(other)
    }
}

/// Writes the text; a long one without its middle.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 300;
        let text = self.text();
        let chars = text.chars().count();
        if chars <= 2 * SHOWN {
            return f.write_str(text);
        }
        let head: String = text.chars().take(SHOWN).collect();
        let tail: String = text.chars().skip(chars - SHOWN).collect();
        write!(f, "{head} ...{} characters... {tail}", chars - 2 * SHOWN)
    }
}

/// Writes the text once, not once per nested value.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
    fn invalid_json() {
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
    fn a_duplicate_member_and_deep_nesting_are_errors() {
        assert!(Json::parse(r#"{"id":1,"id":1}"#).unwrap_err().contains("twice"));
        assert!(Json::parse(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn long_texts_are_shown_short() {
        let json = Json::parse(&format!("\"{}\"", "x".repeat(10_000))).unwrap();
        assert!(json.to_string().len() < 700);
    }

    #[test]
    fn a_name_is_its_code_units() {
        assert!(Json::parse(r#"{"\ud800":1,"\ud801":2,"\ufffd":3}"#).is_ok());
        assert!(Json::parse(r#"{"a":1,"\u0061":1}"#).unwrap_err().contains("twice"));
        assert!(!same(r#"{"\ud800":1}"#, r#"{"\ud801":1}"#));
        assert!(!same(r#""\ud800\ud800\udc00""#, r#""\ud800\udc00\ud800""#));
        assert!(same(r#""\ud800\ud800\udc00""#, "\"\\ud800\u{10000}\""));
        let json = Json::parse(r#"{"\u006d\n":"\u0032.0"}"#).unwrap();
        assert!(json.member("m\n").unwrap().is_text("2.0"));
        assert_eq!(json.member("m\n").unwrap().lossy(), "2.0");
        assert!(!json.is_text(""));
    }

    #[test]
    fn values_keep_their_text() {
        let json = Json::parse(" { \"a\" : [ 1.50 , \"\\u0061\" ] } ").unwrap();
        assert_eq!(json.text(), "{ \"a\" : [ 1.50 , \"\\u0061\" ] }");
        assert_eq!(json.member("a").unwrap().text(), "[ 1.50 , \"\\u0061\" ]");
        assert_eq!(Json::parse("[1,\u{e9}]").unwrap_err(), FAULT);
    }

    const FAULT: &str = "not JSON: expected a value at byte 3, found '\u{e9}'";

    /// With one text per value, each side would need 2 GB.
    #[test]
    fn depth_does_not_multiply_length() {
        let nested = |last: char| {
            let text =
                format!("{}\"{}{last}\"{}", "[".repeat(500), "x".repeat(4 << 20), "]".repeat(500));
            Json::parse(&text).unwrap()
        };
        let (one, two) = (nested('1'), nested('2'));
        assert!(one == nested('1'));
        assert!(one != two);
        let mut inner = &one;
        while let JsonValue::Array(items) = &inner.value {
            inner = &items[0];
        }
        assert_eq!(inner.words().as_ptr(), one.text()[501..].as_ptr());
    }

    /// A linear search for 200,000 names would need 20 billion comparisons.
    #[test]
    fn members_are_found_without_a_linear_search() {
        let object = |numbers: &mut dyn Iterator<Item = u32>, last: &str| {
            let members: String = numbers.map(|at| format!("\"name-{at}\":{at},")).collect();
            Json::parse(&format!("{{{members}\"last\":{last}}}")).unwrap()
        };
        let one = object(&mut (0..200_000), "0");
        assert!(one == object(&mut (0..200_000).rev(), "0"));
        assert!(one != object(&mut (0..200_000).rev(), "1"));
        assert!((0..200_000).all(|at| one.member(&format!("name-{at}")).is_some()));
        let twice = object(&mut (0..200_000), "0").text().replace("name-7\"", "name-8\"");
        assert!(Json::parse(&twice).unwrap_err().contains("\"name-8\" appears twice"));
    }
}
