//! What waits for the reply of a call, and follows it.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use antiphon_core::ErrorObject;
use bytes::Bytes;

use super::{Context, Origin};
use crate::call::CallError;

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

/// The state of what follows the reply of one call. It is set once.
pub(super) enum Followers {
    /// Something was registered before the reply was queued.
    Registered(Box<Registered>),
    /// The reply was queued with nothing registered: a later notification is sent at once.
    Replied,
    /// The reply is an error with nothing registered, and is followed by nothing.
    Refused,
}

/// Everything that waits for the reply of one call, and follows it.
#[derive(Default)]
pub(super) struct Registered {
    subscription: OnceLock<Arc<dyn AfterReply>>,
    notifications: Mutex<Notifications>,
}

/// The notifications that follow the reply, encoded.
enum Notifications {
    Waiting {
        messages: Vec<Bytes>,
        bytes: usize,
    },
    /// The reply is queued: a further notification can be sent at once.
    Replied,
    /// The reply is an error, and is followed by nothing.
    Refused,
}

impl Default for Notifications {
    fn default() -> Self {
        Self::Waiting { messages: Vec::new(), bytes: 0 }
    }
}

impl Registered {
    fn notifications(&self) -> MutexGuard<'_, Notifications> {
        self.notifications.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns false if the call has a reply, or a subscription.
    fn set_subscription(&self, subscription: Arc<dyn AfterReply>) -> bool {
        // Locked, so that the reply comes either before or after it.
        let notifications = self.notifications();
        matches!(*notifications, Notifications::Waiting { .. })
            && self.subscription.set(subscription).is_ok()
    }

    /// Takes the notifications that wait. More may follow, until the reply is queued.
    fn take_messages(&self) -> Vec<Bytes> {
        match &mut *self.notifications() {
            Notifications::Waiting { messages, .. } => std::mem::take(messages),
            Notifications::Replied | Notifications::Refused => Vec::new(),
        }
    }

    /// The reply is queued. Sends the notifications that wait, if there are any. The lock is held, so that
    /// a later notification does not overtake them.
    fn replied(&self, send: impl FnOnce(Vec<Bytes>)) {
        let mut notifications = self.notifications();
        let Notifications::Waiting { messages, .. } = &mut *notifications else { return };
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

    /// Keeps a notification until the reply is queued. Returns it if the reply already is. Fails if more
    /// than `limit` bytes would wait.
    fn push(&self, message: Bytes, limit: usize) -> Result<Option<Bytes>, CallError> {
        match &mut *self.notifications() {
            Notifications::Waiting { bytes, .. } if *bytes + message.len() > limit => {
                return Err(over_limit(limit));
            }
            Notifications::Waiting { messages, bytes } => {
                *bytes += message.len();
                messages.push(message);
            }
            Notifications::Replied => return Ok(Some(message)),
            Notifications::Refused => {}
        }
        Ok(None)
    }
}

impl Context {
    fn followers(&self) -> &Followers {
        self.0.after_reply.get_or_init(|| Followers::Registered(Box::default()))
    }

    fn registered(&self) -> Option<&Registered> {
        match self.0.after_reply.get()? {
            Followers::Registered(registered) => Some(registered),
            Followers::Replied | Followers::Refused => None,
        }
    }

    /// Registers the subscription that must follow the reply of this call. Fails if the call has one
    /// already, or if its reply is queued: the caller learns at most one id.
    pub(crate) fn after_reply(&self, waiting: Arc<dyn AfterReply>) -> Result<(), ErrorObject> {
        let refused = |reason| Err(ErrorObject::internal_error().with_data(reason));
        match self.followers() {
            Followers::Registered(registered) if registered.set_subscription(waiting) => Ok(()),
            Followers::Registered(_) => refused("a call opens at most one subscription"),
            Followers::Replied | Followers::Refused => refused("the call already has its response"),
        }
    }

    /// Keeps a notification until the reply is queued. Returns it if the reply already is. Fails if more
    /// than `limit` bytes would wait.
    pub(super) fn keep_until_reply(
        &self,
        message: Bytes,
        limit: usize,
    ) -> Result<Option<Bytes>, CallError> {
        match self.followers() {
            Followers::Registered(registered) => registered.push(message, limit),
            Followers::Replied => Ok(Some(message)),
            Followers::Refused => Ok(None),
        }
    }

    /// Takes the notifications that follow the reply.
    pub(crate) fn take_followers(&self) -> Vec<Bytes> {
        self.registered().map_or_else(Vec::new, Registered::take_messages)
    }

    /// Whether something must follow the reply, or the handler has kept a clone of this context, which can
    /// still register something.
    #[inline]
    pub(crate) fn may_be_followed(&self) -> bool {
        let is_kept = Arc::strong_count(&self.0) > 1;
        // A clone on another thread may have registered something before it was dropped. The fence makes that
        // visible here.
        fence(Ordering::Acquire);
        is_kept || self.0.after_reply.get().is_some()
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
        match self.0.after_reply.get_or_init(|| Followers::Refused) {
            Followers::Registered(registered) => {
                registered.refused();
                registered.subscription.get()
            }
            Followers::Replied | Followers::Refused => None,
        }
    }

    /// The reply is queued.
    pub(crate) fn replied(&self) {
        let followers = self.0.after_reply.get_or_init(|| Followers::Replied);
        let Followers::Registered(registered) = followers else { return };
        if let Origin::Peer(peer) = &self.0.origin {
            registered.replied(|messages| peer.link().send_after_reply(messages));
        }
        if let Some(waiting) = registered.subscription.get() {
            waiting.replied();
        }
    }
}

fn over_limit(limit: usize) -> CallError {
    let reason = "the notifications after one reply are larger than `Limits::response_bytes`";
    CallError::OverLimit(format!("{reason} ({limit})").into())
}
