//! What a decoder makes of one message.

use std::fmt;

/// How a server would go on.
#[derive(PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Call the method and answer with this id.
    Request { id: String },
    /// Call the method and answer nothing.
    Notification,
    /// Answer -32600: it is JSON and no Request.
    InvalidRequest,
    /// Answer -32700: it is no JSON.
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
