//! How long a server lives, and the work that must not outlive it: running tasks, and handlers that wait for their
//! clients.
//!
//! Handles keep a server alive. Its requests do not: otherwise a task that never ends would keep its server, and the
//! server its tasks.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use super::{McpServer, ServerState};

/// The tokens that end the work of a server.
pub(super) struct Lifetime {
    /// Cancelled when the last handle is dropped.
    ended: CancellationToken,
    /// Cancelled when the present work must end. A child of `ended`.
    work: Mutex<CancellationToken>,
}

/// Ends a server when the last of its handles is dropped.
pub(super) struct EndOnDrop(CancellationToken);

/// A server, without keeping it alive.
pub(crate) struct WeakServer {
    state: Weak<ServerState>,
    ended: CancellationToken,
}

impl Lifetime {
    pub(super) fn new() -> Self {
        let ended = CancellationToken::new();
        Self { work: Mutex::new(ended.child_token()), ended }
    }

    /// The first handle.
    pub(super) fn handle(&self) -> Arc<EndOnDrop> {
        Arc::new(EndOnDrop(self.ended.clone()))
    }

    /// A token that is cancelled when the last handle is dropped.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// A token that is cancelled when work that begins now must end.
    pub(super) fn work(&self) -> CancellationToken {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the present work. Later work may begin, until the last handle is dropped.
    pub(super) fn end_work(&self) {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::replace(&mut *work, self.ended.child_token());
        drop(work);
        ended.cancel();
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl McpServer {
    pub(crate) fn downgrade(&self) -> WeakServer {
        WeakServer { state: Arc::downgrade(&self.state), ended: self.state.lifetime.ended() }
    }

    /// The same server for one of its requests, which does not keep it alive.
    pub(super) fn for_request(&self) -> Self {
        Self { state: self.state.clone(), _handle: None }
    }

    /// Ends the running tasks and the handlers that wait for their clients.
    pub(crate) fn end_work(&self) {
        self.state.lifetime.end_work();
    }
}

impl WeakServer {
    /// Returns the server, unless it is gone. The result does not keep it alive.
    pub(crate) fn upgrade(&self) -> Option<McpServer> {
        self.state.upgrade().map(|state| McpServer { state, _handle: None })
    }

    /// Waits until the last handle of the server is dropped.
    pub(crate) async fn dropped(&self) {
        self.ended.cancelled().await;
    }
}
