//! The sessions of legacy clients: found by their ids, and ended when they are idle.
//!
//! Their number is limited, and so is the memory of what their clients have sent with `initialize`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::http_session::{HttpSession, Principal};

/// The shortest pause between two searches for idle sessions.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// How many bytes all clients together may send with `initialize`: 6 KiB each, with the default limit of sessions.
const MAX_HANDSHAKES_BYTES: usize = 64 << 20;

pub(super) struct Sessions {
    idle: Duration,
    limit: usize,
    table: Mutex<SessionTable>,
    /// Whether the task runs that ends idle sessions.
    is_swept: AtomicBool,
}

#[derive(Default)]
struct SessionTable {
    sessions: HashMap<String, Arc<HttpSession>>,
    handshakes_bytes: usize,
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
        let session =
            self.table().sessions.get(id).filter(|it| it.principal() == principal).cloned()?;
        session.touch();
        Some(session)
    }

    /// Adds a session. If there are too many, the one that has been idle for the longest time ends.
    pub(super) fn insert(
        self: &Arc<Self>,
        session: Arc<HttpSession>,
    ) -> Result<(), TooManySessions> {
        let mut table = self.table();
        let bytes = session.handshake_bytes();
        let mut ended = Vec::new();
        let mut has_room = true;
        while has_room && !table.fits(bytes, self.limit) {
            let idle = table.take_idle(self.limit);
            has_room = !idle.is_empty();
            ended.extend(idle);
        }
        if has_room {
            table.insert(session);
        }
        drop(table);
        ended.iter().for_each(|session| session.end());
        if !has_room {
            return Err(TooManySessions);
        }
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
        let mut table = self.table();
        let idle = table.sessions.iter().filter(|(_, session)| is_idle(session));
        let idle: Vec<_> = idle.map(|(id, _)| id.clone()).collect();
        let ended: Vec<_> = idle.iter().filter_map(|id| table.remove(id)).collect();
        if table.sessions.len() < table.sessions.capacity() / 4 {
            table.sessions.shrink_to_fit();
        }
        drop(table);
        if !ended.is_empty() {
            tracing::debug!(sessions = ended.len(), "idle sessions are ended");
        }
        ended.iter().for_each(|session| session.end());
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sessions {
    /// Without their endpoint, nobody can reach the sessions. A call that runs on without its client would keep its own.
    fn drop(&mut self) {
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        table.sessions.values().for_each(|session| session.end());
    }
}

impl SessionTable {
    fn insert(&mut self, session: Arc<HttpSession>) {
        self.handshakes_bytes += session.handshake_bytes();
        self.sessions.insert(session.id().to_owned(), session);
    }

    fn remove(&mut self, id: &str) -> Option<Arc<HttpSession>> {
        let removed = self.sessions.remove(id)?;
        self.handshakes_bytes -= removed.handshake_bytes();
        Some(removed)
    }

    /// Whether there is room for one more session.
    fn fits(&self, handshake_bytes: usize, limit: usize) -> bool {
        self.sessions.len() < limit
            && self.handshakes_bytes + handshake_bytes <= MAX_HANDSHAKES_BYTES
    }

    /// Takes out the sessions that have been idle for the longest time: a hundredth of the limit at once, so that the
    /// search is rare.
    fn take_idle(&mut self, limit: usize) -> Vec<Arc<HttpSession>> {
        let idle =
            |(id, session): (&String, &Arc<HttpSession>)| Some((session.idle()?, id.clone()));
        let mut idle: Vec<_> = self.sessions.iter().filter_map(idle).collect();
        idle.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        idle.truncate((limit / 100).max(1));
        idle.iter().filter_map(|(_, id)| self.remove(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::StreamableHttp;
    use crate::http::endpoint_limits::EndpointLimits;
    use crate::server::{Agreement, ChangeListeners};
    use crate::types::{ClientCapabilities, Implementation, InitializeParams, Revision};

    #[tokio::test]
    async fn long_handshakes_end_idle_sessions() {
        let options = StreamableHttp::new();
        let limits = EndpointLimits::new(&options);
        let sessions = Sessions::new(Duration::from_secs(60), 10_000);
        let client = Implementation::new("x".repeat(60 << 10), "1");
        let params =
            InitializeParams::new(Revision::V2025_11_25, ClientCapabilities::new(), client);
        for number in 0..1_200 {
            let (id, principal) = (number.to_string(), Principal::default());
            let session = HttpSession::new(id, principal, &options, &limits);
            let agreement = Agreement::new(Revision::V2025_11_25, &params).unwrap();
            assert!(session.session().begin(agreement, &ChangeListeners::default()));
            sessions.insert(Arc::new(session)).unwrap();
        }
        let table = sessions.table();
        let bytes: usize = table.sessions.values().map(|session| session.handshake_bytes()).sum();
        assert_eq!(bytes, table.handshakes_bytes);
        assert!(bytes <= MAX_HANDSHAKES_BYTES && table.sessions.len() >= 1_000, "{bytes} bytes");
        assert!(table.sessions.contains_key("1199") && !table.sessions.contains_key("0"));
    }
}
