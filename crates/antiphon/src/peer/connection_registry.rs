//! The open connections of a server: counts them, limits them, and stops them at shutdown.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::BoxFuture;
use crate::call::{Peer, Stop};
use crate::io::WakeGated;

/// The time that cancelled connections have to send their last replies and close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of connections over the limit that receive an error at the same time.
const REFUSALS: usize = 64;

/// The open connections of a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ConnectionRegistry(Arc<RegistryState>);

struct RegistryState {
    limit: usize,
    connections: AtomicUsize,
    refusals: Arc<Semaphore>,
    peers: Mutex<(u64, HashMap<u64, Peer>)>,
    tasks: TaskTracker,
    stopping: CancellationToken,
    expiring: CancellationToken,
    aborting: CancellationToken,
}

/// The right to hold one connection open, which counts against the limit until it is dropped.
pub(crate) struct ConnectionPermit(ConnectionRegistry);

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The registration of a peer that a shutdown stops. Removed on drop.
pub(crate) struct RegisteredPeer {
    peers: ConnectionRegistry,
    key: u64,
    /// Held until the peer is removed.
    _permit: Option<ConnectionPermit>,
}

impl Drop for RegisteredPeer {
    fn drop(&mut self) {
        self.peers.lock().1.remove(&self.key);
    }
}

/// Ends all connections of a server when it is dropped.
pub(crate) struct StopOnDrop(ConnectionRegistry);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop_all(Stop::Now);
        self.0.0.aborting.cancel();
    }
}

impl ConnectionRegistry {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(RegistryState {
            limit,
            connections: AtomicUsize::new(0),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
            peers: Mutex::default(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            expiring: CancellationToken::new(),
            aborting: CancellationToken::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<u64, Peer>)> {
        self.0.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a permit for one more connection; `None` if the limit is reached.
    pub(crate) fn admit(&self) -> Option<ConnectionPermit> {
        let permit = self.acquire();
        (self.0.connections.load(Ordering::Acquire) <= self.0.limit).then_some(permit)
    }

    /// Returns a permit to send an error to a connection over the limit; `None` if too many receive one
    /// already.
    pub(crate) fn refusal(&self) -> Option<OwnedSemaphorePermit> {
        tracing::warn!(
            limit = self.0.limit,
            "a connection over `Limits::connections` is refused; raise the limit, or look for clients that leak \
             connections"
        );
        self.0.refusals.clone().try_acquire_owned().ok()
    }

    fn acquire(&self) -> ConnectionPermit {
        self.0.connections.fetch_add(1, Ordering::AcqRel);
        ConnectionPermit(self.clone())
    }

    /// Registers a peer until the returned value is dropped.
    pub(crate) fn enter(&self, peer: &Peer) -> RegisteredPeer {
        let mut peers = self.lock();
        peers.0 += 1;
        let key = peers.0;
        peers.1.insert(key, peer.clone());
        drop(peers);
        // Checked after the insertion. A shutdown that begins concurrently either finds the peer in the
        // map, or is seen here.
        if self.0.stopping.is_cancelled() {
            peer.stop(Stop::Gracefully);
        }
        RegisteredPeer { peers: self.clone(), key, _permit: None }
    }

    /// Returns a guard that ends all remaining connections when it is dropped.
    pub(crate) fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }

    /// Cancelled when the time to finish is over: every unanswered request should get an error now.
    #[cfg(feature = "http")]
    pub(crate) fn expiring(&self) -> CancellationToken {
        self.0.expiring.clone()
    }

    /// A token that keeps a shutdown waiting until it is dropped.
    pub(crate) fn hold(&self) -> TaskTrackerToken {
        self.0.tasks.token()
    }

    /// Like [`hold`](Self::hold); `None` once a shutdown has begun.
    #[cfg(feature = "http")]
    pub(crate) fn try_hold(&self) -> Option<TaskTrackerToken> {
        // The token is counted first. A shutdown that begins concurrently either waits for it, or is seen.
        let held = self.hold();
        (!self.is_stopping()).then_some(held)
    }

    /// Whether a shutdown has begun.
    #[cfg(feature = "http")]
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.tasks.is_closed()
    }

    /// Cancelled when the shutdown begins.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.0.stopping.clone()
    }

    /// Like [`enter`](Self::enter), for a WebSocket. It takes a permit of its own, because the HTTP
    /// connection that it came from releases the one it had.
    #[cfg(feature = "ws")]
    pub(crate) fn enter_upgraded(&self, peer: &Peer) -> RegisteredPeer {
        let mut entered = self.enter(peer);
        entered._permit = Some(self.acquire());
        entered
    }

    /// Spawns a task that the shutdown waits for, and aborts at its end.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        mut task: BoxFuture<'static, T>,
    ) -> JoinHandle<Option<T>> {
        let mut aborting = WakeGated::new(self.0.aborting.clone().cancelled_owned());
        self.0.tasks.spawn(poll_fn(move |cx| match task.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => aborting.poll(cx).map(|()| None),
        }))
    }

    /// Stops all connections. Waits up to `limit` for running calls, then cancels them, and at last
    /// aborts the tasks that remain.
    pub(crate) async fn shutdown(&self, limit: Duration) {
        // Closed before anything else: `try_hold` counts on it.
        self.0.tasks.close();
        self.0.stopping.cancel();
        self.stop_all(Stop::Gracefully);
        if timeout(limit, self.0.tasks.wait()).await.is_ok() {
            return;
        }
        tracing::warn!(
            ?limit,
            "running calls did not finish within the shutdown timeout and are cancelled"
        );
        self.stop_all(Stop::Now);
        self.0.expiring.cancel();
        if timeout(CLOSE_TIMEOUT, self.0.tasks.wait()).await.is_err() {
            self.0.aborting.cancel();
            self.0.tasks.wait().await;
        }
    }

    fn stop_all(&self, how: Stop) {
        let peers: Vec<Peer> = self.lock().1.values().cloned().collect();
        peers.iter().for_each(|peer| peer.stop(how));
    }
}
