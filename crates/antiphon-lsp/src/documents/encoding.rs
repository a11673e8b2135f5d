//! The position encodings of the protocol.

use crate::types::{InitializeParams, PositionEncodingKind};

/// The unit of positions on a connection. Both sides agree on it during `initialize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PositionEncoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, as in JavaScript. Every client and server supports them.
    #[default]
    Utf16,
    /// Unicode scalar values: Rust's `char`.
    Utf32,
}

impl PositionEncoding {
    /// Returns the first encoding in the client's list that is one of these three. The list is sorted by preference.
    /// The default is UTF-16.
    pub fn negotiate(params: &InitializeParams) -> Self {
        let general = params.capabilities.general.as_ref();
        let offered = general.and_then(|general| general.position_encodings.as_deref());
        offered.into_iter().flatten().find_map(Self::of).unwrap_or_default()
    }

    /// Returns the encoding with this name, if it is one of these three.
    pub fn of(kind: &PositionEncodingKind) -> Option<Self> {
        match kind.as_str() {
            "utf-8" => Some(Self::Utf8),
            "utf-16" => Some(Self::Utf16),
            "utf-32" => Some(Self::Utf32),
            _ => None,
        }
    }

    /// Returns the number of units in a character.
    pub fn units_of(self, char: char) -> usize {
        match self {
            Self::Utf8 => char.len_utf8(),
            Self::Utf16 => char.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

impl From<PositionEncoding> for PositionEncodingKind {
    fn from(encoding: PositionEncoding) -> Self {
        match encoding {
            PositionEncoding::Utf8 => Self::UTF8,
            PositionEncoding::Utf16 => Self::UTF16,
            PositionEncoding::Utf32 => Self::UTF32,
        }
    }
}
