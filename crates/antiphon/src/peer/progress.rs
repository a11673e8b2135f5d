//! Progress of calls: the watches of our own calls, and their delivery.

use antiphon_core::{Id, Params, RawJson};

use super::Shared;
use crate::call::{CallError, Invocation, Link, Watch};
use crate::dialect::ProgressStyle;

/// A call that is watched until this is dropped.
struct Watched<'a> {
    shared: &'a Shared,
    token: Id,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.shared.subscriptions.unwatch(&self.token);
    }
}

impl Shared {
    fn progress_style(&self) -> Option<&ProgressStyle> {
        self.settings.dialect.as_ref()?.progress.as_ref()
    }

    /// Calls, and delivers the progress of the call to the watch.
    pub(super) async fn send_watched(
        &self,
        mut call: Invocation,
        watch: Watch,
    ) -> Result<RawJson, CallError> {
        let none = "progress; set a dialect that has it, such as Dialect::lsp(), on both sides";
        let style = self.progress_style().ok_or(CallError::Unsupported(none))?;
        let own = self.subscriptions.next_token();
        let token = if style.is_by_id() {
            call.id.get_or_insert(own).clone()
        } else {
            let no_place = "progress of a call whose params are by position; give them by name";
            let asked = style.with_token(call.params.as_ref(), &own);
            call.params = asked.ok_or(CallError::Unsupported(no_place))?;
            own
        };
        self.subscriptions.watch(token.clone(), watch);
        let _watched = Watched { shared: self, token };
        Link::send(self, call).await
    }

    /// Delivers the progress of a call that is watched here. Returns false for any other
    /// notification. It never waits, so the reader calls it where it reads.
    pub(super) fn deliver_progress(&self, method: &[u8], params: Option<&Params>) -> bool {
        if !self.subscriptions.is_tracking() {
            return false;
        }
        let Some((token, value)) =
            self.progress_style().and_then(|style| style.read(method, params))
        else {
            return false;
        };
        let Some(watch) = self.subscriptions.watcher(&token) else { return false };
        watch.deliver(value);
        true
    }
}
