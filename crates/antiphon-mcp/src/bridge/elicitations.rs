//! The elicitations by URL whose end an upstream announces: which client hears of it.
//!
//! A legacy upstream may announce the end when the call is over. So the bridge remembers the session, for a bounded number
//! of elicitations. The oldest are forgotten first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::open_calls::OpenCall;
use crate::server::Session;

/// How many elicitations of one upstream are remembered.
const MAX_ELICITATIONS: usize = 1_000;

/// The longest id that is remembered.
const MAX_ID: usize = 256;

/// The elicitations of one upstream that are not complete.
#[derive(Default)]
pub(super) struct Elicitations(Mutex<VecDeque<Elicitation>>);

pub(super) struct Elicitation {
    id: String,
    /// The number of the call that it belongs to.
    pub(super) call: u64,
    session: Weak<Session>,
}

impl Elicitations {
    /// Remembers whom elicitations belong to. Modern clients are not told their end, because their revision has no such
    /// notification.
    pub(super) fn note<'a>(&self, call: &OpenCall, ids: impl Iterator<Item = &'a String>) {
        let Some(session) = call.cx.session() else { return };
        let mut known = self.known();
        for id in ids.filter(|id| id.len() <= MAX_ID) {
            let (id, session) = (id.clone(), Arc::downgrade(session));
            known.push_back(Elicitation { id, call: call.number, session });
            if known.len() > MAX_ELICITATIONS {
                known.pop_front();
            }
        }
    }

    /// Removes an elicitation.
    pub(super) fn take(&self, id: &str) -> Option<Elicitation> {
        let mut known = self.known();
        let at = known.iter().rposition(|elicitation| elicitation.id == id)?;
        known.remove(at)
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<Elicitation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Elicitation {
    /// The client, if its session has not ended.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        self.session.upgrade()
    }
}
