//! What waits for the reply of a call, and follows it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;

use super::{Context, Origin};

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
    subscription: OnceLock<Arc<dyn AfterReply>>,
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
    fn take_messages(&self) -> Vec<Bytes> {
        match &mut *self.notifications() {
            Notifications::Waiting(messages) => std::mem::take(messages),
            Notifications::Replied | Notifications::Refused => Vec::new(),
        }
    }

    /// The reply is queued. Sends the notifications that wait, if there are any. The lock is held, so that
    /// a later notification does not overtake them.
    fn replied(&self, send: impl FnOnce(Vec<Bytes>)) {
        let mut notifications = self.notifications();
        let Notifications::Waiting(messages) = &mut *notifications else { return };
        let messages = std::mem::take(messages);
        if !messages.is_empty() {
            send(messages);
        }
        *notifications = Notifications::Replied;
    }

    /// The reply is an error.
    fn refused(&self) {
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

impl Context {
    /// Registers what must follow the reply of this call.
    pub(crate) fn after_reply(&self, waiting: Arc<dyn AfterReply>) {
        let _ = self.0.after_reply.get_or_init(Box::default).subscription.set(waiting);
    }

    /// Takes the notifications that follow the reply.
    pub(crate) fn take_followers(&self) -> Vec<Bytes> {
        self.0.after_reply.get().map_or_else(Vec::new, |followers| followers.take_messages())
    }

    /// Whether something must follow the reply.
    #[inline]
    pub(crate) fn has_after_reply(&self) -> bool {
        self.0.after_reply.get().is_some()
    }

    /// The reply is an error.
    pub(crate) fn refused(&self) {
        if let Some(waiting) = self.drop_followers() {
            waiting.refused();
        }
    }

    /// The reply may have been replaced by an error, because its batch is too large.
    pub(crate) fn truncated(&self) {
        if let Some(waiting) = self.drop_followers() {
            waiting.truncated();
        }
    }

    /// Drops the notifications that would follow the reply. Returns the subscription that waits for it.
    fn drop_followers(&self) -> Option<&Arc<dyn AfterReply>> {
        let followers = self.0.after_reply.get()?;
        followers.refused();
        followers.subscription.get()
    }

    /// The reply is queued.
    pub(crate) fn replied(&self) {
        let Some(followers) = self.0.after_reply.get() else { return };
        if let Origin::Peer(peer) = &self.0.origin {
            followers.replied(|messages| peer.link().send_after_reply(messages));
        }
        if let Some(waiting) = followers.subscription.get() {
            waiting.replied();
        }
    }
}
