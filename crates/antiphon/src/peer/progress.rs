//! How far the calls have come: what is told of theirs, and what is heard of ours.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{Id, Params, RawJson};
use bytes::Bytes;
use tokio::time::Instant;

use super::Peer;
use super::writer::Outgoing;
use crate::BoxFuture;
use crate::call::{CallError, Caller as _, Invocation};
use crate::dialect::ProgressStyle;
use crate::subscription::Feed;

/// Who wants to know how far a call has come.
#[derive(Clone)]
pub struct Watch(pub(crate) Arc<Watched>);

pub(crate) struct Watched {
    /// Where it goes, if anywhere.
    pub(crate) feed: Option<Arc<Feed>>,
    last: Mutex<Instant>,
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

    /// The progress of a call that is watched here, and where it goes.
    pub(super) fn watched(&self, call: &Invocation) -> Option<BoxFuture<'static, ()>> {
        let told =
            |params: Option<&Params>| self.progress_style()?.told(call.method.as_bytes(), params);
        let subscriptions = &self.shared.subscriptions;
        if !subscriptions.follows.load(Ordering::Acquire) {
            return None;
        }
        let (token, value) = told(call.params.as_ref())?;
        let watch = subscriptions.watcher(&token)?;
        watch.beat();
        let feed = watch.0.feed.clone();
        Some(Box::pin(async move {
            if let Some(feed) = feed {
                feed.deliver_item(value).await;
            }
        }))
    }
}
