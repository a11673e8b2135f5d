//! One JSON value as text, byte for byte.
//!
//! `RawJson` is a slice of the frame it arrived in: it is never parsed again and never formatted
//! again. A short text is copied instead, since the reference count of a frame costs more.
//!
//! Invariant: the text is well-formed JSON. It comes from text that was scanned, or from a value that
//! was serialized.

use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::scan::{JsonKind, Scanner, SyntaxError};

/// One JSON value as text, byte for byte. Cloning shares the bytes.
///
/// Two values are equal if their texts are equal: `1.0` and `1` differ, as do `[1]` and `[ 1 ]`.
///
/// ```
/// use antiphon_core::RawJson;
///
/// let price = RawJson::parse("1.50")?;
/// assert_eq!(price.as_str(), "1.50");
/// assert_eq!(price.decode::<f64>()?, 1.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RawJson(Repr);

#[derive(Clone)]
enum Repr {
    Inline(InlineText),
    Shared(Bytes),
}

/// A text of at most 23 bytes, with its length in the last byte. Together with the tag of `Repr` it is as
/// large as a `Bytes`. It is built and moved as whole words. The bytes after the text are never read.
#[derive(Clone, Copy)]
struct InlineText([u8; INLINE_CAPACITY + 1]);

const INLINE_CAPACITY: usize = 23;

impl InlineText {
    /// Keeps the first `len` of these bytes.
    #[inline(always)]
    fn of(mut bytes: [u8; INLINE_CAPACITY + 1], len: usize) -> Self {
        let (_, last) = bytes.split_at_mut(INLINE_CAPACITY - 7);
        if let Ok(word) = <[u8; 8]>::try_from(&*last) {
            let text = u64::from_le_bytes(word) & (u64::MAX >> 8);
            last.copy_from_slice(&(text | (len as u64) << 56).to_le_bytes());
        }
        Self(bytes)
    }

    fn copied(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; INLINE_CAPACITY + 1];
        bytes[..INLINE_CAPACITY].get_mut(..text.len())?.copy_from_slice(text);
        Some(Self::of(bytes, text.len()))
    }

    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        self.0.get(..usize::from(self.0[INLINE_CAPACITY])).unwrap_or_default()
    }
}

/// The largest buffer that is kept for the next value.
const MAX_REUSED: usize = 64 * 1024;

thread_local! {
    /// The buffer that values are serialized into. It is reused, so most values need no allocation.
    static ENCODE_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl RawJson {
    /// The value `null`.
    pub const NULL: Self = Self(Repr::Shared(Bytes::from_static(b"null")));

    /// Checks that the text is one JSON value, and keeps it without the white space around it. The nesting
    /// is not limited, and needs no stack.
    ///
    /// # Errors
    /// Fails if the text is not JSON. The error has the position.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, SyntaxError> {
        let text = text.into();
        let value = Scanner::new(&text, usize::MAX).text()?;
        Ok(Self::sliced(&text, value))
    }

    /// Serializes a value.
    ///
    /// # Errors
    /// Fails if the value cannot be serialized, for example a map whose keys are Arrays.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        // The buffer is taken out of the cell. If serializing this value serializes another value, that
        // one finds an empty buffer.
        let mut text = ENCODE_BUFFER.take();
        text.clear();
        serde_json::to_writer(&mut text, value)?;
        if text.len() > MAX_REUSED {
            return Ok(Self(Repr::Shared(text.into())));
        }
        let len = text.len();
        let json = if len > INLINE_CAPACITY {
            Self(Repr::Shared(Bytes::copy_from_slice(&text)))
        } else {
            // Padded, so that the copy has a fixed length.
            text.extend_from_slice(&[0; INLINE_CAPACITY + 1]);
            let bytes = text.first_chunk().copied().unwrap_or_default();
            Self(Repr::Inline(InlineText::of(bytes, len)))
        };
        ENCODE_BUFFER.set(text);
        Ok(json)
    }

    /// Deserializes the value into an owned type. For a type that borrows, deserialize `as_str`.
    ///
    /// # Errors
    /// Fails if the value does not have this type, or is nested more deeply than `serde_json` accepts:
    /// about 128 levels.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.as_bytes())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("checked when it was created")
    }

    /// The text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline(short) => short.as_bytes(),
            Repr::Shared(bytes) => bytes,
        }
    }

    /// The text as shared bytes.
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            Repr::Inline(short) => Bytes::copy_from_slice(short.as_bytes()),
            Repr::Shared(bytes) => bytes,
        }
    }

    /// The JSON type of the value.
    pub fn kind(&self) -> JsonKind {
        JsonKind::of(self.as_bytes().first())
    }

    /// Takes a range of a frame that a scanner has checked.
    #[inline(always)]
    pub(crate) fn sliced(frame: &Bytes, at: Range<usize>) -> Self {
        let len = at.end - at.start;
        // A copy of a fixed length is cheaper than one of `len` bytes.
        match frame.get(at.start..).and_then(<[u8]>::first_chunk) {
            Some(bytes) if len <= INLINE_CAPACITY => {
                Self(Repr::Inline(InlineText::of(*bytes, len)))
            }
            _ => match long_or_last(frame, at) {
                Ok(short) => Self(Repr::Inline(short)),
                Err(shared) => Self(Repr::Shared(shared)),
            },
        }
    }

    /// Copies text that a scanner has checked or a serializer has written.
    pub(crate) fn copied(text: &[u8]) -> Self {
        match InlineText::copied(text) {
            Some(short) => Self(Repr::Inline(short)),
            None => Self(Repr::Shared(Bytes::copy_from_slice(text))),
        }
    }
}

/// Takes a range that is long, or near the end of the frame. It returns the parts and not a `RawJson`,
/// because the compiler would build a `RawJson` with two variants in memory and then move it.
#[inline(never)]
fn long_or_last(frame: &Bytes, at: Range<usize>) -> Result<InlineText, Bytes> {
    let len = at.end - at.start;
    // The last value of a frame is mostly an id. There are bytes before it, so a whole word can be
    // loaded.
    if len <= 16
        && let Some(bytes) = frame.get(..at.end).and_then(<[u8]>::last_chunk)
    {
        let text = u128::from_le_bytes(*bytes).unbounded_shr(8 * (16 - len) as u32);
        let mut bytes = [0; INLINE_CAPACITY + 1];
        bytes[..16].copy_from_slice(&text.to_le_bytes());
        return Ok(InlineText::of(bytes, len));
    }
    InlineText::copied(&frame[at.clone()]).ok_or_else(|| frame.slice(at))
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for RawJson {}

impl Hash for RawJson {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RawJson {
    /// Writes the text unchanged. Works with serde_json only, like `RawValue`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_slice::<&RawValue>(self.as_bytes())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    /// Keeps the text unchanged. Works with serde_json only, like `RawValue`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::copied(raw.get().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_text_and_drops_the_space_around_it() {
        let raw = RawJson::parse(" { \"a\" : 1.50 }\n").unwrap();
        assert_eq!(raw.as_str(), "{ \"a\" : 1.50 }");
        assert_eq!(raw.kind(), JsonKind::Object);
    }

    #[test]
    fn passes_through_serde_unchanged() {
        #[derive(Serialize, Deserialize)]
        struct Holder {
            value: RawJson,
        }
        let text = "{\"value\":18446744073709551616.10}";
        let holder: Holder = serde_json::from_str(text).unwrap();
        assert_eq!(holder.value.as_str(), "18446744073709551616.10");
        assert_eq!(serde_json::to_string(&holder).unwrap(), text);
    }

    #[test]
    fn inline_and_shared_texts_behave_alike() {
        assert_eq!(size_of::<RawJson>(), size_of::<Bytes>());
        for len in [
            0,
            1,
            INLINE_CAPACITY - 3,
            INLINE_CAPACITY - 2,
            INLINE_CAPACITY - 1,
            INLINE_CAPACITY,
            MAX_REUSED,
            MAX_REUSED + 1,
        ] {
            let text = format!("\"{}\"", "x".repeat(len));
            let parsed = RawJson::parse(text.clone()).unwrap();
            let encoded = RawJson::encode(&"x".repeat(len)).unwrap();
            assert_eq!((parsed.as_str(), &parsed), (&*text, &encoded));
            assert_eq!(parsed.into_bytes(), encoded.into_bytes());
        }
    }

    #[test]
    fn serialization_may_nest() {
        struct Nested;
        impl Serialize for Nested {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let inner = RawJson::encode("inner").map_err(serde::ser::Error::custom)?;
                serializer.serialize_str(inner.as_str())
            }
        }
        assert_eq!(
            RawJson::encode(&[Nested, Nested]).unwrap().as_str(),
            r#"["\"inner\"","\"inner\""]"#
        );
    }

    #[test]
    fn rejects_invalid_json() {
        assert_eq!(
            RawJson::parse("{\"a\":}").unwrap_err().to_string(),
            "expected a value at byte 5"
        );
    }
}
