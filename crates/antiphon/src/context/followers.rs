//! What waits for the reply of a call, and follows it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

/// Something that a call has opened and that must not be sent before the reply, such as the items of a
/// subscription.
pub(crate) trait AfterReply: Send + Sync {
    /// The reply is queued: the items may follow it.
    fn replied(&self);

    /// The reply is an error: the caller does not know the subscription, so it must be closed.
    fn refused(&self);

    /// The reply may have been replaced by an error: the caller may or may not know the subscription.
    fn truncated(&self);
}

/// Everything that waits for the reply of one call, and follows it.
#[derive(Default)]
pub(super) struct Followers {
    pub(super) subscription: OnceLock<Arc<dyn AfterReply>>,
    /// Encoded notifications.
    messages: Mutex<Vec<Bytes>>,
}

impl Followers {
    pub(super) fn take_messages(&self) -> Vec<Bytes> {
        std::mem::take(&mut self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn push(&self, message: Bytes) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }
}
