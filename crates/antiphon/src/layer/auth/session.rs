//! The authentication state of one connection or HTTP request.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::connection::{AuthState, Connection};
use crate::identity::Identity;

/// The maximum number of failed logins per connection. Further logins are rejected unchecked.
const MAX_FAILED_LOGINS: usize = 16;

/// The identity that the `Auth` with this mark accepted; `None` if it rejected the credentials of the
/// header.
type CheckedIdentity = (u64, Option<Arc<Identity>>);

/// The authentication state of one connection or HTTP request, for all `Auth` layers around it.
#[derive(Debug, Default)]
pub(super) struct AuthSession {
    checked: Mutex<Vec<CheckedIdentity>>,
    /// Held while credentials are verified, so that they are verified once.
    pub(super) verifying: tokio::sync::Mutex<()>,
    refused_calls: AtomicUsize,
    /// Logins that have failed or are being verified.
    failed_logins: AtomicUsize,
}

impl AuthState for AuthSession {
    fn refused_calls(&self) -> usize {
        self.refused_calls.load(Ordering::Relaxed)
    }
}

impl AuthSession {
    /// Returns the session of a connection, and creates it on first use.
    pub(super) fn of(connection: &Connection) -> Arc<Self> {
        let state: Arc<dyn Any + Send + Sync> =
            connection.session.get_or_init(|| Arc::new(Self::default())).clone();
        // Only this module sets the state, so it always has this type.
        state.downcast().unwrap_or_default()
    }

    /// Returns the session of a connection if it exists.
    pub(super) fn get(connection: &Connection) -> Option<&Self> {
        let state: &dyn Any = &**connection.session.get()?;
        state.downcast_ref()
    }

    fn checked(&self) -> MutexGuard<'_, Vec<CheckedIdentity>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the result of the `Auth` with this mark; `None` if it has not checked anything yet.
    pub(super) fn result(&self, mark: u64) -> Option<Option<Arc<Identity>>> {
        self.checked().iter().find(|(by, _)| *by == mark).map(|(_, identity)| identity.clone())
    }

    /// Stores the result of the `Auth` with this mark.
    pub(super) fn set_result(&self, mark: u64, identity: Option<Arc<Identity>>) {
        let mut checked = self.checked();
        checked.retain(|(by, _)| *by != mark);
        checked.push((mark, identity));
    }

    /// Counts a refused call.
    pub(super) fn add_refused_call(&self) {
        self.refused_calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns false if too many logins have failed. Otherwise counts one more as failed until
    /// [`logged_in`](Self::logged_in): several logins may run at once, and one may be cancelled.
    pub(super) fn start_login(&self) -> bool {
        let next = |logins| (logins < MAX_FAILED_LOGINS).then_some(logins + 1);
        self.failed_logins.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// Stores the identity of a successful login.
    pub(super) fn logged_in(&self, mark: u64, identity: &Arc<Identity>) {
        self.failed_logins.fetch_sub(1, Ordering::Relaxed);
        self.set_result(mark, Some(identity.clone()));
    }
}
