//! The session of a legacy revision, and the revision in use.

use std::sync::{Mutex, RwLock};

use antiphon::CancellationToken;
use antiphon::http::{HeaderMap, HeaderValue};

use super::headers::{self, SESSION_ID};
use crate::client::error::McpError;
use crate::client::inbox::locked;
use crate::types::Revision;

/// The longest session id.
const MAX_ID: usize = 1024;

/// The session of a legacy revision, and the revision in use.
#[derive(Default)]
pub(super) struct Session {
    state: RwLock<State>,
    /// Cancelled when the current session ends: its stream and the requests of the server end too.
    ended: Mutex<CancellationToken>,
}

#[derive(Default)]
struct State {
    revision: Option<Revision>,
    id: Option<HeaderValue>,
}

impl State {
    fn is_modern(&self) -> bool {
        self.revision.is_some_and(Revision::is_modern)
    }
}

impl Session {
    fn state(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner));
    }

    /// Sets the revision. Without one, a new handshake begins. Requests of other calls keep the id of the old session
    /// until then, so that the server refuses them in a way that they expect.
    pub(super) fn speak(&self, revision: Option<Revision>) {
        if revision.is_none() {
            std::mem::take(&mut *locked(&self.ended)).cancel();
        }
        self.change(|state| state.revision = revision);
    }

    pub(super) fn is_modern(&self) -> bool {
        self.state().is_modern()
    }

    /// What is cancelled when the current session ends.
    pub(super) fn ended(&self) -> CancellationToken {
        locked(&self.ended).clone()
    }

    /// Takes the id that the server has chosen, if it has chosen one.
    pub(super) fn take_id(&self, headers: &HeaderMap) -> Result<(), McpError> {
        let Some(id) = headers.get(SESSION_ID) else {
            self.change(|state| state.id = None);
            return Ok(());
        };
        let is_visible = id.as_bytes().iter().all(u8::is_ascii_graphic);
        if !is_visible || id.is_empty() || id.len() > MAX_ID {
            let reason = "the session id is not a short text of visible ASCII characters";
            return Err(McpError::Protocol(reason.to_owned()));
        }
        let mut id = id.clone();
        // It grants access to the session, so it stays out of logs.
        id.set_sensitive(true);
        self.change(|state| state.id = Some(id));
        Ok(())
    }

    pub(super) fn add_headers(&self, headers: &mut HeaderMap) {
        let state = self.state();
        if let Some(revision) = state.revision {
            headers::of_revision(headers, revision);
        }
        if let Some(id) = state.id.as_ref().filter(|_| !state.is_modern()) {
            headers.insert(SESSION_ID, id.clone());
        }
    }

    /// Forgets the session. Returns whether there was one.
    pub(super) fn end(&self) -> bool {
        locked(&self.ended).cancel();
        let mut had = false;
        self.change(|state| had = state.id.take().is_some());
        had
    }
}
