//! The cause of a message that cannot be read.

use antiphon_core::ErrorObject;

use crate::log_excerpt::message_excerpt;

/// A message that is not JSON-RPC, with its beginning. It holds only what the peer has sent.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{excerpt}`{note}")]
pub(super) struct UnreadableMessage {
    excerpt: String,
    /// What else is known about the message, such as its content type.
    note: String,
    source: ErrorObject,
}

impl UnreadableMessage {
    pub(super) fn new(message: &[u8], note: String, source: ErrorObject) -> Self {
        Self { excerpt: message_excerpt(message), note, source }
    }
}
