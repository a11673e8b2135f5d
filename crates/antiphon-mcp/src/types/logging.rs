//! Log messages of a server.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::meta::Meta;

/// The severity of a log message, as in RFC 5424. A more severe one is greater.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LoggingLevel {
    /// Details for debugging.
    Debug,
    /// General information.
    #[default]
    Info,
    /// Normal but significant events.
    Notice,
    /// Warnings.
    Warning,
    /// Errors.
    Error,
    /// Critical conditions.
    Critical,
    /// Action is needed at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LoggingLevel {
    /// All levels, least severe first.
    pub const ALL: &'static [Self] = &[
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not the name of a level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown log level {0:?} (known are debug, info, notice, warning, error, critical, alert and emergency)"
)]
pub struct UnknownLevel(String);

impl FromStr for LoggingLevel {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        let level = Self::ALL.iter().find(|level| level.as_str() == name);
        level.copied().ok_or_else(|| UnknownLevel(name.to_owned()))
    }
}

/// The params of `logging/setLevel` (legacy).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SetLevelParams {
    /// The least severe level that the client wants.
    pub level: LoggingLevel,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl SetLevelParams {
    /// Asks for messages of this level and above.
    pub fn new(level: LoggingLevel) -> Self {
        Self { level, meta: Meta::new() }
    }
}

/// The params of `notifications/message`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LoggingMessageParams {
    /// The severity.
    pub level: LoggingLevel,
    /// The part of the server that logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The message: a String, or any other value.
    #[serde(default)]
    pub data: Value,
    /// Metadata of the notification.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl LoggingMessageParams {
    /// Creates a message.
    pub fn new(level: LoggingLevel, data: impl Into<Value>) -> Self {
        Self { level, data: data.into(), ..Self::default() }
    }
}

setters! { LoggingMessageParams { with_logger => logger: String } }
meta_setters! { SetLevelParams, LoggingMessageParams }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_named_as_on_the_wire() {
        assert!(LoggingLevel::ALL.is_sorted());
        for level in LoggingLevel::ALL {
            assert_eq!(level.as_str().parse(), Ok(*level));
            assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
        }
        assert!("loud".parse::<LoggingLevel>().is_err());
    }
}
