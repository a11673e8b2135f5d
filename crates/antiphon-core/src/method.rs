//! Method names.
//!
//! Invariant: two names are equal if they are equal after unescaping.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;

use crate::escape::unescape;
use crate::json::RawJson;
use crate::members::ValueSpan;
use crate::scan::JsonKind;

/// The name of a method, both as it was received and unescaped.
///
/// ```
/// use antiphon_core::{Method, RawJson};
///
/// let escaped = Method::from_json(RawJson::parse(r#""textDocument\/hover""#)?);
/// assert_eq!(escaped, Some(Method::new("textDocument/hover")));
/// assert_eq!(Method::from("ping"), "ping");
/// # Ok::<(), antiphon_core::SyntaxError>(())
/// ```
#[derive(Clone)]
pub struct Method {
    quoted: RawJson,
    /// Names are seldom escaped, so this is one word: a Request of at most 128 bytes is moved without a
    /// call to `memcpy`.
    unescaped: Option<Box<Unescaped>>,
}

#[derive(Clone)]
struct Unescaped(Box<str>);

impl Method {
    /// Creates a method name.
    pub fn new(name: &str) -> Self {
        Self::from_json(RawJson::encode(name).expect("a str serializes"))
            .expect("a str serializes to a String")
    }

    /// Reads a name from a JSON value; `None` if it is not a String.
    pub fn from_json(quoted: RawJson) -> Option<Self> {
        if quoted.kind() != JsonKind::String {
            return None;
        }
        let unescaped = unescaped(quoted.as_bytes());
        Some(Self { quoted, unescaped })
    }

    /// Like `from_json`, for a String in a frame; `may_escape` is false if it certainly has no escapes.
    #[inline(always)]
    pub(crate) fn at(span: ValueSpan, frame: &Bytes, may_escape: bool) -> Self {
        let unescaped = if may_escape { unescaped(span.of(frame)) } else { None };
        Self { quoted: span.json(frame), unescaped }
    }

    /// The unescaped name: `textDocument\/hover` is `textDocument/hover`.
    pub fn as_str(&self) -> &str {
        match &self.unescaped {
            Some(name) => &name.0,
            None => {
                let quoted = self.quoted.as_str();
                &quoted[1..quoted.len() - 1]
            }
        }
    }

    /// The unescaped name as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.unescaped {
            Some(name) => name.0.as_bytes(),
            None => {
                let quoted = self.quoted.as_bytes();
                &quoted[1..quoted.len() - 1]
            }
        }
    }

    /// The name as it was received, in quotes.
    pub fn as_json(&self) -> &RawJson {
        &self.quoted
    }
}

/// The value of a String if it has escapes.
fn unescaped(quoted: &[u8]) -> Option<Box<Unescaped>> {
    match unescape(quoted) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(Box::new(Unescaped(String::from_utf8_lossy(&text).into()))),
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Method {}

impl PartialEq<str> for Method {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Method {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<Method> for str {
    fn eq(&self, other: &Method) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Method> for &str {
    fn eq(&self, other: &Method) -> bool {
        *self == other.as_str()
    }
}

/// Equal to the hash of the name, as [`Borrow<str>`] requires.
impl Hash for Method {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

/// So that a map with methods as keys is searched by a `&str`.
impl Borrow<str> for Method {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Method {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Method {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_name_equals_its_text_and_is_found_by_it() {
        let escaped = Method::from_json(RawJson::parse(r#""a\/b""#).unwrap()).unwrap();
        assert_eq!(escaped, "a/b");
        assert_eq!(escaped, *"a/b");
        assert_eq!("a/b", escaped);
        assert_eq!(*"a/b", escaped);
        assert_ne!(escaped, "a");
        assert_eq!(escaped.as_ref(), "a/b");
        let map = HashMap::from([(escaped, 1)]);
        assert_eq!(map.get("a/b"), Some(&1));
        assert_eq!(map.get(&Method::from("a/b")), Some(&1));
    }
}
