//! The result of decoding one message.

use std::fmt;

/// The next step of a server.
#[derive(PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Call the method and respond with this id.
    Request { id: String },
    /// Call the method and send no response.
    Notification,
    /// Respond with -32600: valid JSON, but not a Request.
    InvalidRequest,
    /// Respond with -32700: not valid JSON.
    ParseError,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { id } => write!(f, "Request with id {id}"),
            Self::Notification => f.write_str("Notification"),
            Self::InvalidRequest => f.write_str("-32600"),
            Self::ParseError => f.write_str("-32700"),
        }
    }
}
