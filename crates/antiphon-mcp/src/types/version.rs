//! The revisions of the protocol, which are named by dates.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A revision of the protocol. Later revisions are greater.
///
/// ```
/// use antiphon_mcp::types::Revision;
///
/// assert_eq!(Revision::parse("2025-11-25"), Some(Revision::V2025_11_25));
/// assert!(Revision::LATEST.is_modern());
/// assert!(!Revision::LATEST_LEGACY.is_modern());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(non_camel_case_types)] // The names are dates.
#[non_exhaustive]
pub enum Revision {
    /// The first revision, with the HTTP+SSE transport.
    V2024_11_05,
    /// Streamable HTTP, batches and authorization.
    V2025_03_26,
    /// Structured results and elicitation, without batches.
    V2025_06_18,
    /// Tasks, elicitation by URL and sampling with tools.
    V2025_11_25,
    /// Without sessions: each request names its revision and capabilities.
    V2026_07_28,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: &'static [Self] = &[
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The latest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The latest revision that starts with `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The date, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of this date; `None` if it is unknown.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|revision| revision.as_str() == date)
    }

    /// Whether requests have no session: each one names its revision, and `initialize` does not exist.
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not the date of a known revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown revision {0:?} (known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28)"
)]
pub struct UnknownRevision(String);

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(date: &str) -> Result<Self, UnknownRevision> {
        Self::parse(date).ok_or_else(|| UnknownRevision(date.to_owned()))
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_parsed_and_ordered() {
        assert!(Revision::ALL.is_sorted());
        for revision in Revision::ALL {
            assert_eq!(revision.to_string().parse(), Ok(*revision));
        }
        let error = "2025-01-01".parse::<Revision>().unwrap_err();
        assert!(error.to_string().starts_with("unknown revision \"2025-01-01\""));
        assert!(Revision::LATEST > Revision::LATEST_LEGACY);
    }
}
