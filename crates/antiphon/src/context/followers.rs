//! What waits for the reply of a call, and follows it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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
    notifications: Mutex<Notifications>,
}

/// The notifications that follow the reply, encoded.
enum Notifications {
    Waiting(Vec<Bytes>),
    /// The reply is queued: a further notification can be sent at once.
    Replied,
    /// The reply is an error, and is followed by nothing.
    Refused,
}

impl Default for Notifications {
    fn default() -> Self {
        Self::Waiting(Vec::new())
    }
}

impl Followers {
    fn notifications(&self) -> MutexGuard<'_, Notifications> {
        self.notifications.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the notifications that wait. More may follow, until the reply is queued.
    pub(super) fn take_messages(&self) -> Vec<Bytes> {
        match &mut *self.notifications() {
            Notifications::Waiting(messages) => std::mem::take(messages),
            Notifications::Replied | Notifications::Refused => Vec::new(),
        }
    }

    /// The reply is queued. Sends the notifications that wait, if there are any. The lock is held, so that
    /// a later notification does not overtake them.
    pub(super) fn replied(&self, send: impl FnOnce(Vec<Bytes>)) {
        let mut notifications = self.notifications();
        let Notifications::Waiting(messages) = &mut *notifications else { return };
        let messages = std::mem::take(messages);
        if !messages.is_empty() {
            send(messages);
        }
        *notifications = Notifications::Replied;
    }

    /// The reply is an error.
    pub(super) fn refused(&self) {
        *self.notifications() = Notifications::Refused;
    }

    /// Keeps a notification until the reply is queued. Returns it if the reply already is.
    pub(super) fn push(&self, message: Bytes) -> Option<Bytes> {
        match &mut *self.notifications() {
            Notifications::Waiting(messages) => messages.push(message),
            Notifications::Replied => return Some(message),
            Notifications::Refused => {}
        }
        None
    }
}
