//! What has a connection shown so far, and to which `Auth`?

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::credentials::Identity;
use crate::connection::Connection;

/// Logins that may fail on one connection. Who has failed so often is not judged any more.
const FAILURES: usize = 16;

/// Who it is to the `Auth` of that mark; nobody, where its header was refused.
type Judged = (u64, Option<Arc<Identity>>);

/// What a connection has shown so far.
#[derive(Debug, Default)]
pub(crate) struct Session {
    judged: Mutex<Vec<Judged>>,
    /// One question about it at a time.
    pub(super) asking: tokio::sync::Mutex<()>,
    /// Calls that were refused for want of credentials.
    refused: AtomicUsize,
    /// Logins that have failed, or are being judged.
    logins: AtomicUsize,
}

impl Session {
    pub(super) fn of(connection: &Connection) -> &Arc<Self> {
        connection.session.get_or_init(Arc::default)
    }

    fn judged(&self) -> MutexGuard<'_, Vec<Judged>> {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` where it was not judged yet.
    pub(super) fn verdict(&self, mark: u64) -> Option<Option<Arc<Identity>>> {
        self.judged().iter().find(|(by, _)| *by == mark).map(|(_, identity)| identity.clone())
    }

    pub(super) fn enter(&self, mark: u64, identity: Option<Arc<Identity>>) {
        let mut judged = self.judged();
        judged.retain(|(by, _)| *by != mark);
        judged.push((mark, identity));
    }

    /// A call was refused.
    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(feature = "http")]
    pub(super) fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether one more login may be judged. It counts as failed until it has succeeded: many may be
    /// under way at once, and one may be given up.
    pub(super) fn may_log_in(&self) -> bool {
        let next = |logins| (logins < FAILURES).then_some(logins + 1);
        self.logins.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// A login was right.
    pub(super) fn logged_in(&self, mark: u64, identity: &Arc<Identity>) {
        self.logins.fetch_sub(1, Ordering::Relaxed);
        self.enter(mark, Some(identity.clone()));
    }
}
