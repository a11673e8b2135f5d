//! The bindings of a case: the values of its `<name>` placeholders.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::json::Json;

/// The placeholder for the result of the server's ordinary method.
const RESULT: &str = "result";

/// The values of the placeholders of one case.
///
/// A clone shares them until one of the two gets another value. Every comparison works on a clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings(Arc<BTreeMap<String, Json>>);

impl Bindings {
    /// Binds a name before the case begins.
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        self.insert(name, Json::parse(text)?);
        Ok(())
    }

    /// Returns the message with each bound `"<name>"` replaced, quotes included. The inserted value is
    /// not expanded again: it may come from the server.
    pub(crate) fn fill(&self, message: &[u8]) -> Vec<u8> {
        let mut filled = Vec::with_capacity(message.len());
        let mut rest = message;
        while let Some(at) = memchr::memmem::find(rest, OPEN) {
            let (before, inside) = rest.split_at(at + OPEN.len());
            rest = inside;
            match self.bound(inside) {
                Some((json, after)) => {
                    filled.extend_from_slice(&before[..at]);
                    filled.extend_from_slice(json.text().as_bytes());
                    rest = after;
                }
                None => filled.extend_from_slice(before),
            }
        }
        filled.extend_from_slice(rest);
        filled
    }

    /// Returns the text with each `<name>` of a String replaced by its characters, as a header needs it.
    pub(crate) fn fill_header(&self, text: &str) -> String {
        let strings = self.0.iter().filter(|(_, json)| json.is_string());
        strings.fold(text.to_owned(), |text, (name, json)| {
            text.replace(&format!("<{name}>"), &json.lossy())
        })
    }

    /// Returns the value of the name at the beginning, and the rest after the name.
    fn bound<'m>(&self, inside: &'m [u8]) -> Option<(&Json, &'m [u8])> {
        let length = inside.iter().position(|byte| !is_in_name(*byte))?;
        let (name, after) = inside.split_at(length);
        let after = after.strip_prefix(CLOSE)?;
        Some((self.0.get(std::str::from_utf8(name).ok()?)?, after))
    }

    pub(super) fn bind(&mut self, name: &str, found: &Json) -> Result<(), String> {
        match self.0.get(name) {
            // The result of a method may differ from call to call.
            None if name == RESULT => Ok(()),
            Some(bound) if bound != found => {
                Err(format!("expected <{name}> to be {bound} again, found {found}"))
            }
            Some(_) => Ok(()),
            None => {
                self.insert(name, found.clone());
                Ok(())
            }
        }
    }

    fn insert(&mut self, name: &str, json: Json) {
        Arc::make_mut(&mut self.0).insert(name.to_owned(), json);
    }
}

const OPEN: &[u8] = b"\"<";
const CLOSE: &[u8] = b">\"";

/// Reports whether a name may contain the byte.
pub(super) fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inserted_value_is_not_expanded() {
        let mut bindings = Bindings::default();
        bindings.set("a", r#"["<b>","<c>"]"#).unwrap();
        bindings.set("b", r#""<a>""#).unwrap();
        bindings.set("c", "1").unwrap();
        let filled = bindings.fill(br#"{"x":"<a>","y":"<b>","z":"<c>"}"#);
        assert_eq!(filled, br#"{"x":["<b>","<c>"],"y":"<a>","z":1}"#);
    }

    #[test]
    fn only_names_are_filled() {
        let mut bindings = Bindings::default();
        bindings.set("a", "1").unwrap();
        for (text, filled) in [
            (r#""<"<a>""#, r#""<1"#),
            (r#""<a>"<a>""#, r#"1<a>""#),
            (r#""<a"<a>"#, r#""<a"<a>"#),
            (r#""<a> ""#, r#""<a> ""#),
            (r#""<b>""#, r#""<b>""#),
            (r#""<a"#, r#""<a"#),
            (r#""<>""#, r#""<>""#),
            (r#""<"#, r#""<"#),
        ] {
            assert_eq!(bindings.fill(text.as_bytes()), filled.as_bytes(), "{text}");
        }
    }

    #[test]
    fn a_header_holds_the_characters_of_a_string() {
        let mut bindings = Bindings::default();
        bindings.set("a", r#""xy""#).unwrap();
        bindings.set("b", "1").unwrap();
        assert_eq!(bindings.fill_header("=<a>,<b>"), "=xy,<b>");
    }

    #[test]
    fn a_clone_is_bound_apart() {
        let mut one = Bindings::default();
        one.set("a", "1").unwrap();
        let mut two = one.clone();
        two.set("b", "2").unwrap();
        assert_eq!(one.fill(br#""<a>""<b>""#), br#"1"<b>""#);
        assert_eq!(two.fill(br#""<a>""<b>""#), b"12");
    }
}
