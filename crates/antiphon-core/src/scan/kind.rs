//! The type of a JSON value, read from its first byte.
//!
//! This module does not check the value: the scanner has already checked it.

use std::fmt;

/// The six JSON types, named as the specification names them.
///
/// ```
/// use antiphon_core::{JsonKind, RawJson};
///
/// assert_eq!(RawJson::parse("[1]")?.kind(), JsonKind::Array);
/// # Ok::<(), antiphon_core::SyntaxError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
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

impl JsonKind {
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

impl fmt::Display for JsonKind {
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
