//! The open connections of a server: how many there are, and how a shutdown finds them.

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

use crate::BoxFuture;
use crate::call::{Peer, Stop};
use crate::io::WakeGated;

/// How long a cancelled connection has to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);
/// Connections over the limit that are being told so at one time.
const REFUSALS: usize = 64;

/// The open connections of a server, so that a shutdown finds them.
#[derive(Clone)]
pub(crate) struct ConnectionRegistry(Arc<Inner>);

struct Inner {
    limit: usize,
    connections: AtomicUsize,
    refusals: Arc<Semaphore>,
    peers: Mutex<(u64, HashMap<u64, Peer>)>,
    tasks: TaskTracker,
    stopping: CancellationToken,
    expiring: CancellationToken,
    aborting: CancellationToken,
}

/// One connection's place among those allowed.
pub(crate) struct ConnectionPermit(ConnectionRegistry);

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One peer's entry among those that a shutdown stops.
pub(crate) struct RegisteredPeer {
    peers: ConnectionRegistry,
    key: u64,
    place: Option<ConnectionPermit>,
}

impl Drop for RegisteredPeer {
    fn drop(&mut self) {
        self.peers.lock().1.remove(&self.key);
    }
}

/// The end of a server, whatever its cause.
pub(crate) struct StopOnDrop(ConnectionRegistry);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop_all(Stop::Now);
        self.0.0.aborting.cancel();
    }
}

impl ConnectionRegistry {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Inner {
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

    /// A place for one more connection, if there is one.
    pub(crate) fn admit(&self) -> Option<ConnectionPermit> {
        let place = self.occupy();
        (self.0.connections.load(Ordering::Acquire) <= self.0.limit).then_some(place)
    }

    /// A place among the few connections that are told that there is no place.
    pub(crate) fn refusal(&self) -> Option<OwnedSemaphorePermit> {
        tracing::warn!(limit = self.0.limit, "a connection over the limit is refused");
        self.0.refusals.clone().try_acquire_owned().ok()
    }

    fn occupy(&self) -> ConnectionPermit {
        self.0.connections.fetch_add(1, Ordering::AcqRel);
        ConnectionPermit(self.clone())
    }

    /// Remembers a peer until the entry is dropped.
    pub(crate) fn enter(&self, peer: &Peer) -> RegisteredPeer {
        let mut peers = self.lock();
        peers.0 += 1;
        let key = peers.0;
        peers.1.insert(key, peer.clone());
        drop(peers);
        // Looked at after the entry is made: a shutdown that began before has seen it, or is seen.
        if self.0.stopping.is_cancelled() {
            peer.stop(Stop::Gracefully);
        }
        RegisteredPeer { peers: self.clone(), key, place: None }
    }

    /// Ends whatever is left when it is dropped.
    pub(crate) fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }

    /// Cancelled when whoever waits for an answer should get one.
    pub(crate) fn expiring(&self) -> CancellationToken {
        self.0.expiring.clone()
    }

    /// Cancelled when the shutdown begins.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.0.stopping.clone()
    }

    /// The same for a WebSocket, whose HTTP connection gives up its place.
    #[cfg(feature = "ws")]
    pub(crate) fn enter_upgraded(&self, peer: &Peer) -> RegisteredPeer {
        let mut entered = self.enter(peer);
        entered.place = Some(self.occupy());
        entered
    }

    /// Runs a task that the shutdown waits for, and at last drops.
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

    pub(crate) async fn shutdown(&self, limit: Duration) {
        self.0.stopping.cancel();
        self.stop_all(Stop::Gracefully);
        self.0.tasks.close();
        if timeout(limit, self.0.tasks.wait()).await.is_ok() {
            return;
        }
        tracing::warn!(?limit, "what ran did not finish in time and is cancelled");
        self.stop_all(Stop::Now);
        self.0.expiring.cancel();
        if timeout(GOODBYE, self.0.tasks.wait()).await.is_err() {
            self.0.aborting.cancel();
            self.0.tasks.wait().await;
        }
    }

    fn stop_all(&self, how: Stop) {
        let peers: Vec<Peer> = self.lock().1.values().cloned().collect();
        peers.iter().for_each(|peer| peer.stop(how));
    }
}
