//! The task that makes the next connection and subscribes again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use antiphon_core::{Code, Refused};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::{ConnectionState, Reconnect};
use crate::call::{CallError, Invocation, Peer};
use crate::client::{Client, ClientBuilder, ConnectError};
use crate::endpoint::Endpoint;
use crate::error::{CloseReason, ErrorChain};
use crate::subscription::{Ended, FollowedSubscription};

/// The state that the client and its supervisor share.
pub(super) struct SupervisorState {
    builder: ClientBuilder,
    pub(super) endpoint: Endpoint,
    pub(super) policy: Reconnect,
    pub(super) state: watch::Sender<ConnectionState>,
    current: Mutex<Option<Peer>>,
    followed: Mutex<Vec<Followed>>,
    /// Signals a subscription whose connection ended before it was registered here.
    detached: Notify,
    /// The client is closed or dropped.
    pub(super) closed: CancellationToken,
}

/// A subscription, and the call that subscribes again.
struct Followed {
    call: Invocation,
    feed: Weak<FollowedSubscription>,
    /// The last connection on which it was subscribed. It is subscribed once on each connection: a server
    /// that shuts down ends its subscriptions and refuses new ones, but its connection stays open while
    /// a handler runs.
    last: Peer,
}

impl SupervisorState {
    pub(super) fn new(builder: ClientBuilder, endpoint: Endpoint, policy: Reconnect) -> Arc<Self> {
        let starting =
            ConnectionState::Reconnecting { attempt: 1, reason: "not connected yet".into() };
        Arc::new(Self {
            builder,
            endpoint,
            policy,
            state: watch::Sender::new(starting),
            current: Mutex::default(),
            followed: Mutex::default(),
            detached: Notify::new(),
            closed: CancellationToken::new(),
        })
    }

    /// The peer of the current connection, if any.
    pub(super) fn current(&self) -> Option<Peer> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        current.filter(|peer| !peer.is_closed())
    }

    /// The peer of the current connection, or of the next one.
    pub(super) async fn connected(&self) -> Result<Peer, CallError> {
        let mut states = self.state.subscribe();
        loop {
            if let ConnectionState::Closed { reason } = &*states.borrow_and_update() {
                return Err(CallError::Closed(reason.clone()));
            }
            if let Some(peer) = self.current() {
                return Ok(peer);
            }
            if states.changed().await.is_err() {
                return Err(CallError::closed("the client was dropped"));
            }
        }
    }

    /// Registers a new subscription, which was subscribed on the connection of this peer.
    pub(super) fn follow(&self, call: Invocation, feed: &Arc<FollowedSubscription>, on: Peer) {
        let mut followed = self.followed();
        followed.retain(|followed| followed.feed.strong_count() > 0);
        if let ConnectionState::Closed { reason } = &*self.state.borrow() {
            // The supervisor has ended.
            return feed.end(Ended::Disconnected(reason.clone()));
        }
        followed.push(Followed { call, feed: Arc::downgrade(feed), last: on });
        drop(followed);
        // Race: the connection may have ended before the subscription was registered. Then the supervisor
        // has not seen it, and must look again.
        if feed.attached().is_none() {
            self.detached.notify_one();
        }
    }

    fn followed(&self) -> MutexGuard<'_, Vec<Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the subscriptions without a connection that were not subscribed on this one yet.
    fn take_detached(&self, peer: &Peer) -> Vec<(Invocation, Arc<FollowedSubscription>)> {
        let mut followed = self.followed();
        followed
            .retain(|followed| followed.feed.upgrade().is_some_and(|feed| feed.ended().is_none()));
        let detached = |followed: &mut Followed| {
            let feed = followed.feed.upgrade().filter(|feed| feed.attached().is_none())?;
            let is_new = !followed.last.is(peer);
            followed.last = peer.clone();
            is_new.then(|| (followed.call.clone(), feed))
        };
        followed.iter_mut().filter_map(detached).collect()
    }

    /// Subscribes again. A server that is busy is asked again, after pauses like those between connections.
    async fn resubscribe(
        &self,
        peer: &Peer,
        reason: &CloseReason,
        (call, feed): (Invocation, Arc<FollowedSubscription>),
    ) {
        let mut pauses = Backoff::new(&self.policy);
        while feed.ended().is_none() {
            let subscribing = peer.link().clone();
            match subscribing.follow(call.clone(), feed.clone(), Some(reason.clone())).await {
                Err(error) if is_temporary(&error) => sleep(pauses.pause()).await,
                Ok(()) | Err(CallError::Closed(_) | CallError::Interrupted(_)) => return,
                Err(CallError::Rpc(error)) => feed.end(Ended::Failed(error)),
                Err(other) => feed.end(Ended::Disconnected(CloseReason::failed(other))),
            }
        }
    }

    pub(super) async fn connect(&self) -> Result<Client, ConnectError> {
        self.builder.clone().connect_once(&self.endpoint).await
    }

    pub(super) fn enter(&self, peer: Peer) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer);
        self.state.send_replace(ConnectionState::Connected);
    }

    fn end(&self, reason: &CloseReason) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.state.send_replace(ConnectionState::Closed { reason: reason.clone() });
        let followed = std::mem::take(&mut *self.followed());
        for feed in followed.iter().filter_map(|followed| followed.feed.upgrade()) {
            feed.end(Ended::Disconnected(reason.clone()));
        }
    }
}

/// Keeps the client connected until it is closed, dropped or out of attempts.
pub(super) async fn supervise(core: Arc<SupervisorState>, first: Option<Client>) {
    let mut reason = CloseReason::from("not connected yet");
    let mut connection = first;
    let mut attempts = Attempts::new(&core.policy);
    loop {
        let client = match connection.take() {
            Some(client) => client,
            None => match reconnect(&core, &mut attempts, &reason).await {
                Ok(client) => client,
                Err(last) => return core.end(&last),
            },
        };
        let Some(peer) = client.peer() else {
            return core.end(&"the client has no connection".into());
        };
        core.enter(peer.clone());
        let since = Instant::now();
        tokio::select! {
            ended = serve(&core, &peer, &reason) => reason = ended,
            () = core.closed.cancelled() => {
                client.close().await;
                return core.end(&CloseReason::ByUs);
            }
        }
        // A server that closes a connection at once counts as a failed attempt.
        if since.elapsed() >= core.policy.longest.min(SETTLED) {
            attempts = Attempts::new(&core.policy);
        }
    }
}

/// A connection that lasts this long resets the backoff.
const SETTLED: Duration = Duration::from_secs(10);

/// Consecutive attempts.
struct Attempts {
    pauses: Backoff,
    attempt: u32,
}

impl Attempts {
    fn new(policy: &Reconnect) -> Self {
        Self { pauses: Backoff::new(policy), attempt: 0 }
    }
}

/// Whether a subscribe call that failed with this error may succeed later on the same connection: the
/// server is busy, or too many calls of this side are pending.
fn is_temporary(error: &CallError) -> bool {
    match error {
        CallError::Rpc(error) => error.code == Code::SERVER_BUSY,
        CallError::Refused(Refused::TooMany { .. }) => true,
        _ => false,
    }
}

/// Subscribes again while the connection is open. Returns the reason of its end.
async fn serve(core: &SupervisorState, peer: &Peer, gap: &CloseReason) -> CloseReason {
    let subscribing = async {
        let detached = || {
            let detached = core.take_detached(peer).into_iter();
            detached.map(|followed| core.resubscribe(peer, gap, followed))
        };
        let mut resubscribing: FuturesUnordered<_> = detached().collect();
        loop {
            tokio::select! {
                () = core.detached.notified() => resubscribing.extend(detached()),
                Some(()) = resubscribing.next() => {}
            }
        }
    };
    tokio::select! {
        reason = peer.closed() => reason,
        () = subscribing => "the client stopped subscribing".into(),
    }
}

/// Returns the next connection, or the reason why there is none.
async fn reconnect(
    core: &SupervisorState,
    attempts: &mut Attempts,
    reason: &CloseReason,
) -> Result<Client, CloseReason> {
    let mut reason = reason.clone();
    let most = core.policy.attempts.unwrap_or(u32::MAX);
    while attempts.attempt < most {
        attempts.attempt += 1;
        let attempt = attempts.attempt;
        core.state.send_replace(ConnectionState::Reconnecting { attempt, reason: reason.clone() });
        let pause = attempts.pauses.pause();
        let connecting = async {
            sleep(pause).await;
            core.connect().await
        };
        let outcome = tokio::select! {
            outcome = connecting => outcome,
            () = core.closed.cancelled() => return Err(CloseReason::ByUs),
        };
        match outcome {
            Ok(client) => return Ok(client),
            Err(error) => {
                reason = CloseReason::failed(error);
                tracing::debug!(attempt, reason = %ErrorChain(&reason), "connection attempt failed");
            }
        }
    }
    Err(CloseReason::failed(GaveUp { attempts: most, source: reason }))
}

/// All attempts to connect have failed.
#[derive(Debug, thiserror::Error)]
#[error("gave up after {attempts} attempts")]
struct GaveUp {
    attempts: u32,
    /// The reason of the last one.
    source: CloseReason,
}
