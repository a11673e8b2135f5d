//! The sessions of legacy clients: found by their ids, and ended when they are idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::http_session::{HttpSession, Principal};

/// The shortest pause between two searches for idle sessions.
const MIN_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Sessions {
    idle: Duration,
    limit: usize,
    table: Mutex<HashMap<String, Arc<HttpSession>>>,
    /// Whether the task runs that ends idle sessions.
    is_swept: AtomicBool,
}

/// All places are taken by sessions that are not idle.
#[derive(Debug)]
pub(super) struct TooManySessions;

impl Sessions {
    pub(super) fn new(idle: Duration, limit: usize) -> Arc<Self> {
        let table = Mutex::default();
        Arc::new(Self { idle, limit: limit.max(1), table, is_swept: AtomicBool::new(false) })
    }

    /// Returns the session with this id, if it is one of this caller, and marks it as used.
    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<HttpSession>> {
        let session = self.table().get(id).filter(|it| it.principal() == principal).cloned()?;
        session.touch();
        Some(session)
    }

    /// Adds a session. If there are too many, the one that has been idle for the longest time ends.
    pub(super) fn insert(
        self: &Arc<Self>,
        session: Arc<HttpSession>,
    ) -> Result<(), TooManySessions> {
        let mut table = self.table();
        let ended = match table.len() >= self.limit {
            true => make_room(&mut table, self.limit)?,
            false => Vec::new(),
        };
        table.insert(session.id().to_owned(), session);
        drop(table);
        ended.iter().for_each(|session| session.end());
        self.sweep();
        Ok(())
    }

    /// Ends a session. Returns whether there was one.
    pub(super) fn remove(&self, id: &str) -> bool {
        let removed = self.table().remove(id);
        removed.inspect(|session| session.end()).is_some()
    }

    /// Starts the task that ends idle sessions, once.
    fn sweep(self: &Arc<Self>) {
        if self.is_swept.swap(true, Ordering::Relaxed) {
            return;
        }
        let (weak, pause) = (Arc::downgrade(self), (self.idle / 4).max(MIN_PAUSE));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(sessions) = weak.upgrade() else { return };
                sessions.end_idle();
            }
        });
    }

    fn end_idle(&self) {
        let is_idle = |session: &HttpSession| session.idle().is_some_and(|idle| idle >= self.idle);
        let mut ended = Vec::new();
        let mut table = self.table();
        table.retain(|_, session| {
            let is_idle = is_idle(session);
            if is_idle {
                ended.push(session.clone());
            }
            !is_idle
        });
        if table.len() < table.capacity() / 4 {
            table.shrink_to_fit();
        }
        drop(table);
        if !ended.is_empty() {
            tracing::debug!(sessions = ended.len(), "idle sessions are ended");
        }
        ended.iter().for_each(|session| session.end());
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sessions {
    /// Without their endpoint, nobody can reach the sessions. A call that runs on without its client would keep its own.
    fn drop(&mut self) {
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        table.values().for_each(|session| session.end());
    }
}

/// Takes the sessions that have been idle for the longest time out of the table: a hundredth of the limit at once, so that
/// the search is rare.
fn make_room(
    table: &mut HashMap<String, Arc<HttpSession>>,
    limit: usize,
) -> Result<Vec<Arc<HttpSession>>, TooManySessions> {
    let idle = |(id, session): (&String, &Arc<HttpSession>)| Some((session.idle()?, id.clone()));
    let mut idle: Vec<_> = table.iter().filter_map(idle).collect();
    if idle.is_empty() {
        return Err(TooManySessions);
    }
    idle.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    idle.truncate((limit / 100).max(1));
    Ok(idle.iter().filter_map(|(_, id)| table.remove(id)).collect())
}
