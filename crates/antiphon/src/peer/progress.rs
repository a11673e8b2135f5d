//! How far the calls have come: what is told of theirs, and what is heard of ours.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{Id, Params, RawJson};
use bytes::Bytes;
use tokio::time::Instant;

use super::writer::Outgoing;
use super::{Peer, Shared};
use crate::call::{CallError, Caller as _, Invocation};
use crate::dialect::ProgressStyle;
use crate::subscription::{Ended, Feed};

/// Who wants to know how far a call has come.
#[derive(Clone)]
pub struct Watch(pub(crate) Arc<Watched>);

pub(crate) struct Watched {
    /// Where it goes, if anywhere.
    pub(crate) feed: Option<Arc<Feed>>,
    last: Mutex<Instant>,
}

/// Nobody tells anything any more.
impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            feed.end(Ended::Over(String::new()));
        }
    }
}

impl Watch {
    pub(crate) fn new(feed: Option<Arc<Feed>>) -> Self {
        Self(Arc::new(Watched { feed, last: Mutex::new(Instant::now()) }))
    }

    /// When something was last heard.
    pub(crate) fn last(&self) -> Instant {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time begins.
    pub(crate) fn beat(&self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// A call that is watched until this is dropped.
struct Listed<'a> {
    peer: &'a Peer,
    token: Id,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.peer.shared.subscriptions.unwatch(&self.token);
    }
}

impl Peer {
    pub(crate) fn progress_style(&self) -> Option<&ProgressStyle> {
        self.shared.dialect.as_ref()?.progress.as_ref()
    }

    /// Sends a message that is written already, once there is room.
    pub(crate) async fn send_own(&self, message: Bytes) -> Result<(), CallError> {
        self.capacity().await?;
        self.shared.enqueue(Outgoing::Own(message))
    }

    /// Calls, and hears how far the call has come.
    pub(crate) async fn send_watched(
        &self,
        mut call: Invocation,
        watch: Watch,
    ) -> Result<RawJson, CallError> {
        let none = "progress; set a dialect that has it, such as Dialect::lsp(), on both sides";
        let style = self.progress_style().ok_or(CallError::Unsupported(none))?;
        let own = self.shared.subscriptions.next_token();
        let token = if style.is_by_id() {
            call.id.get_or_insert(own).clone()
        } else {
            let no_place = "progress of a call whose params are by position; give them by name";
            let asked = style.ask(call.params.as_ref(), &own);
            call.params = asked.ok_or(CallError::Unsupported(no_place))?;
            own
        };
        self.shared.subscriptions.watch(token.clone(), watch);
        let _listed = Listed { peer: self, token };
        self.send(call).await
    }

    /// Hears the progress of a call that is watched here; false for any other notification.
    pub(super) fn hears(&self, method: &[u8], params: Option<&Params>) -> bool {
        self.shared.hears(method, params)
    }
}

impl Shared {
    /// Hears the progress of a call that is watched here; false for any other notification. It waits
    /// for nothing, so it is heard where it is read.
    pub(super) fn hears(&self, method: &[u8], params: Option<&Params>) -> bool {
        if !self.subscriptions.follows.load(Ordering::Acquire) {
            return false;
        }
        let style = self.dialect.as_ref().and_then(|dialect| dialect.progress.as_ref());
        let Some((token, value)) = style.and_then(|style| style.told(method, params)) else {
            return false;
        };
        let Some(watch) = self.subscriptions.watcher(&token) else { return false };
        watch.beat();
        if let Some(feed) = &watch.0.feed {
            feed.offer(value);
        }
        true
    }
}
