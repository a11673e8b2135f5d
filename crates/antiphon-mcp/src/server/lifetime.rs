//! How long a server lives, and the work that must not outlive it: running tasks, and handlers that wait for their
//! clients.
//!
//! Handles keep a server alive. Its requests do not: otherwise a task that never ends would keep its server, and the
//! server its tasks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use super::{McpServer, ServerState};

/// The tokens that end the work of a server.
pub(super) struct Lifetime {
    /// Cancelled when the last handle is dropped. The others are its children.
    ended: CancellationToken,
    tokens: Mutex<Tokens>,
}

struct Tokens {
    /// Cancelled when the present work must end.
    work: CancellationToken,
    /// Cancelled when the streams that are open now must end.
    listening: CancellationToken,
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
        let tokens = Tokens { work: ended.child_token(), listening: ended.child_token() };
        Self { ended, tokens: Mutex::new(tokens) }
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
        self.tokens().work.clone()
    }

    /// A token that is cancelled when a stream that begins now must end.
    pub(super) fn listening(&self) -> CancellationToken {
        self.tokens().listening.clone()
    }

    /// Ends the open streams. Later ones may begin.
    pub(super) fn end_listening(&self) {
        let ended = std::mem::replace(&mut self.tokens().listening, self.ended.child_token());
        ended.cancel();
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Begins a shutdown: open streams end, and streams that begin during the shutdown too.
    pub(crate) fn begin_shutdown(&self) {
        self.state.lifetime.listening().cancel();
    }

    /// Ends a shutdown: running tasks and the handlers that wait for their clients end. The server can be served again.
    pub(crate) fn end_shutdown(&self) {
        let lifetime = &self.state.lifetime;
        let new =
            Tokens { work: lifetime.ended.child_token(), listening: lifetime.ended.child_token() };
        let ended = std::mem::replace(&mut *lifetime.tokens(), new);
        ended.work.cancel();
        ended.listening.cancel();
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
