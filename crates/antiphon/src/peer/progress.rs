//! The progress of outgoing calls: which calls are watched, and the delivery of their progress.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::{Id, Params, RawJson};

use super::Shared;
use crate::call::{CallError, Invocation, Link, Watch};

/// The calls of a connection whose progress is watched, by progress token.
///
/// Most connections have none and allocate no table.
#[derive(Default)]
pub(super) struct WatchedCalls {
    table: Mutex<Option<Box<WatchTable>>>,
    /// A call was watched. While it is false, incoming notifications are not inspected.
    watches_any: AtomicBool,
}

#[derive(Default)]
struct WatchTable {
    watches: HashMap<Id, Watch>,
    last_token: u64,
}

impl WatchedCalls {
    fn table(&self) -> MutexGuard<'_, Option<Box<WatchTable>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a progress token that no other call of this connection has.
    fn next_token(&self) -> Id {
        let mut table = self.table();
        let table = table.get_or_insert_default();
        table.last_token += 1;
        Id::from(&*format!("progress-{}", table.last_token))
    }

    /// Watches the call with this token until the returned guard is dropped.
    fn watch(&self, token: Id, watch: Watch) -> WatchGuard<'_> {
        self.insert(token.clone(), watch);
        WatchGuard { calls: self, token }
    }

    fn insert(&self, token: Id, watch: Watch) {
        self.watches_any.store(true, Ordering::Release);
        self.table().get_or_insert_default().watches.insert(token, watch);
    }

    pub(super) fn unwatch(&self, token: &Id) {
        // Dropped after the lock is released, because it may own application code.
        let _watch = self.table().as_mut().and_then(|table| table.watches.remove(token));
    }

    fn find(&self, token: &Id) -> Option<Watch> {
        self.table().as_ref()?.watches.get(token).cloned()
    }
}

/// Ends the watch of a call when it is dropped.
struct WatchGuard<'a> {
    calls: &'a WatchedCalls,
    token: Id,
}

impl Drop for WatchGuard<'_> {
    fn drop(&mut self) {
        self.calls.unwatch(&self.token);
    }
}

const NO_PROGRESS: &str =
    "progress; set a dialect that has it, such as Dialect::lsp(), on both sides";

impl Shared {
    /// Watches progress with a new token, and returns the token.
    pub(super) fn watch_token(&self, watch: Watch) -> Result<Id, CallError> {
        self.settings.progress().ok_or(CallError::Unsupported(NO_PROGRESS))?;
        let token = self.watched_calls.next_token();
        self.watched_calls.insert(token.clone(), watch);
        Ok(token)
    }

    /// Calls, and delivers the progress of the call to the watch.
    pub(super) async fn send_watched(
        &self,
        mut call: Invocation,
        watch: Watch,
    ) -> Result<RawJson, CallError> {
        let style = self.settings.progress().ok_or(CallError::Unsupported(NO_PROGRESS))?;
        let own = self.watched_calls.next_token();
        let token = if style.is_by_id() {
            call.id.get_or_insert(own).clone()
        } else {
            let positional = "progress for positional params; pass the params by name";
            let with_token = style.with_token(call.params.as_ref(), &own);
            call.params = with_token.ok_or(CallError::Unsupported(positional))?;
            own
        };
        let _watched = self.watched_calls.watch(token, watch);
        Link::send(self, call).await
    }

    /// Delivers the progress of a watched call. Returns false for any other notification. It never
    /// waits, so the reader can call it.
    pub(super) fn deliver_progress(&self, method: &[u8], params: Option<&Params>) -> bool {
        if !self.watched_calls.watches_any.load(Ordering::Acquire) {
            return false;
        }
        let style = self.settings.progress();
        let Some((token, value)) = style.and_then(|style| style.read(method, params)) else {
            return false;
        };
        let Some(watch) = self.watched_calls.find(&token) else { return false };
        watch.deliver(value);
        true
    }
}
