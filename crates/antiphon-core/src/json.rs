//! One JSON value exactly as it was written.
//!
//! `RawJson` is a slice of the frame it arrived in: it is never parsed again and never written anew.
//! It holds well-formed JSON always, since it can only be made from text that was checked or from a
//! value that was serialized.

use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::scan::{Fault, Kind, Scanner};

/// One JSON value exactly as it was written. Cloning shares the bytes.
///
/// ```
/// use antiphon_core::RawJson;
///
/// let price = RawJson::parse("1.50")?;
/// assert_eq!(price.as_str(), "1.50");
/// assert_eq!(price.decode::<f64>()?, 1.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Bytes);

impl RawJson {
    /// The value `null`.
    pub const NULL: Self = Self(Bytes::from_static(b"null"));

    /// Checks that the text is one JSON value and keeps it as it is.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, Fault> {
        let text = text.into();
        let mut scanner = Scanner::new(&text, usize::MAX)?;
        let value = scanner.value()?;
        scanner.end()?;
        Ok(Self(text.slice(value)))
    }

    /// Serializes a value.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|text| Self(text.into()))
    }

    /// Deserializes the value. Owned types only: what borrows should borrow from `as_str`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when it was made")
    }

    /// The text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text as shared bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Which of the six JSON types it is.
    pub fn kind(&self) -> Kind {
        Kind::of(self.0.first())
    }

    /// Wraps a slice that a scanner has passed.
    pub(crate) fn checked(text: Bytes) -> Self {
        Self(text)
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
    /// Writes the text as it is; meant for serde_json, as `RawValue` is.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_slice::<&RawValue>(&self.0)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    /// Keeps the text as it is; meant for serde_json, as `RawValue` is.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Bytes::from(String::from(Box::<str>::from(raw)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_text_and_drops_the_space_around_it() {
        let raw = RawJson::parse(" { \"a\" : 1.50 }\n").unwrap();
        assert_eq!(raw.as_str(), "{ \"a\" : 1.50 }");
        assert_eq!(raw.kind(), Kind::Object);
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
    fn refuses_what_is_not_json() {
        assert_eq!(
            RawJson::parse("{\"a\":}").unwrap_err().to_string(),
            "expected a value at byte 5"
        );
    }
}
