//! Request ids, kept byte for byte.
//!
//! This module never converts an id to a float.
//!
//! Invariant: an id is sent back with the bytes that were received, such as `1.50`, `1e3`, 2^64, or a
//! String with escapes.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io::Write as _;

use bytes::Bytes;

use crate::escape::unescape;
use crate::json::RawJson;
use crate::members::ValueSpan;
use crate::scan::JsonKind;
use crate::version::Version;

/// The `id` of a Request or Response (section 4).
///
/// Numbers are equal if their texts are equal. Strings are equal if their values are equal, with or
/// without escapes.
///
/// ```
/// use antiphon_core::Id;
///
/// assert_eq!(Id::from(7).as_str(), "7");
/// assert_eq!(Id::from("seven").as_str(), "\"seven\"");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// A Number as it was received.
    Number(NumberId),
    /// A String as it was received.
    String(StringId),
    /// `null`: discouraged in a Request, and the id of an error response when no id could be read.
    Null,
    /// An id that JSON-RPC 2.0 does not allow, or the id of a 1.0 request. A decoder creates it only if
    /// [`Versions`](crate::Versions) include 1.0.
    Other(OtherId),
}

/// A Number id. Only a JSON Number becomes one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NumberId(RawJson);

/// A String id. Only a JSON String becomes one.
#[derive(Clone)]
pub struct StringId(RawJson);

/// The id of a JSON-RPC 1.0 request, or an id of a kind that 2.0 does not allow. It may be any JSON value, or absent.
///
/// It includes the version of the request, because the response must have the same version.
#[derive(Clone, Eq)]
pub struct OtherId(Versioned);

/// The version and the JSON text of an [`OtherId`]. This is an enum, not a pair, to keep dropping an `Id` cheap: each
/// variant with a text stores it at the same offset, and one comparison of the tag decides whether there is a text.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Versioned {
    V1Absent,
    V2Absent,
    V1(RawJson),
    V2(RawJson),
}

impl OtherId {
    pub(crate) fn id(version: Version, json: Option<RawJson>) -> Id {
        Id::Other(Self(match (version, json) {
            (Version::V1, Some(json)) => Versioned::V1(json),
            (Version::V2, Some(json)) => Versioned::V2(json),
            (Version::V1, None) => Versioned::V1Absent,
            (Version::V2, None) => Versioned::V2Absent,
        }))
    }

    /// The version of the request.
    pub fn version(&self) -> Version {
        match self.0 {
            Versioned::V1(_) | Versioned::V1Absent => Version::V1,
            Versioned::V2(_) | Versioned::V2Absent => Version::V2,
        }
    }

    /// The id as JSON; `None` if the request has no member `id`.
    pub fn as_json(&self) -> Option<&RawJson> {
        match &self.0 {
            Versioned::V1(json) | Versioned::V2(json) => Some(json),
            Versioned::V1Absent | Versioned::V2Absent => None,
        }
    }
}

/// A separate function, so the comparison of other kinds of ids is inlined.
impl PartialEq for OtherId {
    #[cold]
    #[inline(never)]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Hash for OtherId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Id {
    /// Returns the version of the request with this id.
    pub fn version(&self) -> Version {
        match self {
            Self::Other(id) => id.version(),
            Self::Null | Self::Number(_) | Self::String(_) => Version::V2,
        }
    }

    /// Returns the id of a request of this version that has this id as JSON.
    ///
    /// ```
    /// use antiphon_core::{Id, Version};
    ///
    /// let id = Id::from(7).in_version(Version::V1);
    /// assert_eq!((id.as_str(), id.version()), ("7", Version::V1));
    /// assert_eq!(id.in_version(Version::V2), Id::from(7));
    /// ```
    #[must_use]
    pub fn in_version(&self, version: Version) -> Self {
        let json = match self {
            Self::Number(NumberId(json)) | Self::String(StringId(json)) => Some(json.clone()),
            Self::Null => Some(RawJson::NULL),
            Self::Other(id) => id.as_json().cloned(),
        };
        let plain = json.clone().filter(|_| version == Version::V2).and_then(Self::from_json);
        plain.unwrap_or_else(|| OtherId::id(version, json))
    }

    /// Reads an id from a JSON value; `None` for a Boolean, an Array or an Object.
    pub fn from_json(value: RawJson) -> Option<Self> {
        match value.kind() {
            JsonKind::Null => Some(Self::Null),
            JsonKind::Number => Some(Self::Number(NumberId(value))),
            JsonKind::String => Some(Self::String(StringId(value))),
            JsonKind::Boolean | JsonKind::Array | JsonKind::Object => None,
        }
    }

    /// Like `from_json`, for a value in a frame; null for a value that cannot be an id.
    #[inline(always)]
    pub(crate) fn at(span: ValueSpan, frame: &Bytes) -> Self {
        match span.kind(frame) {
            JsonKind::Number => Self::Number(NumberId(span.json(frame))),
            JsonKind::String => Self::String(StringId(span.json(frame))),
            JsonKind::Null | JsonKind::Boolean | JsonKind::Array | JsonKind::Object => Self::Null,
        }
    }

    /// The id as JSON text; `null` if it is absent.
    pub fn as_str(&self) -> &str {
        self.as_json().map_or("null", RawJson::as_str)
    }

    /// The id as JSON bytes, like [`as_str`](Self::as_str).
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.as_json().map_or(b"null", RawJson::as_bytes)
    }

    #[inline(always)]
    fn as_json(&self) -> Option<&RawJson> {
        match self {
            Self::Number(NumberId(json)) | Self::String(StringId(json)) => Some(json),
            Self::Null => None,
            Self::Other(id) => id.as_json(),
        }
    }

    /// The value of a Number that is a whole number below 2^64.
    ///
    /// `7.0` and `7e0` count as 7, because a peer that stores numbers as floats may write them so. `-0` counts
    /// as 0.
    pub fn as_u64(&self) -> Option<u64> {
        let Self::Number(NumberId(text)) = self else {
            return None;
        };
        let digits = text.as_bytes();
        // Fewer than 19 digits cannot overflow. Most ids are that short.
        if digits.len() < 19 && digits.iter().all(u8::is_ascii_digit) {
            return Some(digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')));
        }
        whole_number(text.as_str())
    }
}

/// The value of the text of a JSON Number that is a whole number below 2^64.
fn whole_number(text: &str) -> Option<u64> {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.bytes().chain(fraction.bytes());
    // The digits up to the last that is not 0. The zeros behind it, and the exponent, are a power of ten.
    let zeros = digits.clone().rev().take_while(|digit| *digit == b'0').count();
    let significant = whole.len() + fraction.len() - zeros;
    if significant == 0 {
        return Some(0);
    }
    if is_negative {
        return None;
    }
    let scale = exponent.parse::<i64>().ok()?.checked_add(i64::try_from(zeros).ok()?)?;
    let scale = u32::try_from(scale.checked_sub(i64::try_from(fraction.len()).ok()?)?).ok()?;
    let value = digits.take(significant).try_fold(0_u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    value.checked_mul(10_u64.checked_pow(scale)?)
}

/// Removes a fraction of zeros from a number's text.
pub(crate) fn trim_zero_fraction(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        // A u64 has 20 digits at most.
        let mut digits = [0; 20];
        let mut rest = &mut digits[..];
        let _ = write!(rest, "{number}");
        let len = 20 - rest.len();
        Self::Number(NumberId(RawJson::copied(&digits[..len])))
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        let quoted = RawJson::encode(text).expect("a str serializes");
        Self::String(StringId(quoted))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for StringId {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || unescape(self.0.as_bytes()) == unescape(other.0.as_bytes())
    }
}

impl Eq for StringId {}

impl Hash for StringId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        unescape(self.0.as_bytes()).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn id(text: &'static str) -> Id {
        Id::from_json(RawJson::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn keeps_every_number_as_written() {
        for text in ["1.50", "1e3", "18446744073709551616", "-1", "0", "-0", "1E+2"] {
            assert_eq!(id(text).as_str(), text);
        }
    }

    #[test]
    fn strings_compare_by_value() {
        assert_eq!(id(r#""a\/b""#), id(r#""a/b""#));
        assert_eq!(HashSet::from([id(r#""\u0061""#)]), HashSet::from([id(r#""a""#)]));
        assert_ne!(id(r#""1""#), id("1"));
        assert_ne!(id(r#""\ud800""#), id(r#""\ud801""#));
    }

    #[test]
    fn as_u64_reads_whole_numbers_only() {
        assert_eq!(id("7").as_u64(), Some(7));
        assert_eq!(id("7.0").as_u64(), Some(7));
        assert_eq!(id("18446744073709551615").as_u64(), Some(u64::MAX));
        for text in ["7.5", "-1", "18446744073709551616", "1e300", "null", "\"7\""] {
            assert_eq!(id(text).as_u64(), None, "{text}");
        }
    }

    #[test]
    fn as_u64_reads_every_spelling_of_a_whole_number() {
        for (text, number) in [
            ("7e0", 7),
            ("1e3", 1_000),
            ("1E+3", 1_000),
            ("1.50e1", 15),
            ("0.0015E4", 15),
            ("1500e-2", 15),
            ("1844674407370955161500e-2", u64::MAX),
            ("1.8446744073709551615e19", u64::MAX),
            ("18446744073709551615.000", u64::MAX),
            ("-0", 0),
            ("-0.0e7", 0),
            ("0e99999999999999999999", 0),
        ] {
            assert_eq!(id(text).as_u64(), Some(number), "{text}");
        }
        for text in
            ["15e-1", "1.5e0", "-7e0", "1e20", "1e-99999999999999999999", "1e9223372036854775807"]
        {
            assert_eq!(id(text).as_u64(), None, "{text}");
        }
    }
}
