//! Who makes the next connection, and sees to what the last one left behind.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::{ConnectionState, Reconnect};
use crate::call::{CallError, Invocation, Peer};
use crate::client::{Client, ClientBuilder, ConnectError};
use crate::endpoint::Endpoint;
use crate::subscription::{Ended, Feed};

/// What the client and its supervisor share.
pub(super) struct Core {
    builder: ClientBuilder,
    endpoint: Endpoint,
    pub(super) policy: Reconnect,
    pub(super) state: watch::Sender<ConnectionState>,
    current: Mutex<Option<Peer>>,
    followed: Mutex<Vec<Followed>>,
    /// A subscription was made that its connection did not survive.
    forsaken: Notify,
    /// Nobody wants a connection any more.
    pub(super) unwanted: CancellationToken,
}

/// A subscription, and how it is made anew.
struct Followed {
    call: Invocation,
    feed: Weak<Feed>,
}

impl Core {
    pub(super) fn new(builder: ClientBuilder, endpoint: Endpoint, policy: Reconnect) -> Arc<Self> {
        let starting = ConnectionState::Reconnecting { attempt: 1, reason: "it is new".into() };
        Arc::new(Self {
            builder,
            endpoint,
            policy,
            state: watch::Sender::new(starting),
            current: Mutex::default(),
            followed: Mutex::default(),
            forsaken: Notify::new(),
            unwanted: CancellationToken::new(),
        })
    }

    /// The peer of the connection that there is.
    pub(super) fn current(&self) -> Option<Peer> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        current.filter(|peer| !peer.is_closed())
    }

    /// The peer of the connection that there is, or will be.
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
                return Err(CallError::closed("the client is gone"));
            }
        }
    }

    /// Remembers a subscription that was just made.
    pub(super) fn follow(&self, call: Invocation, feed: &Arc<Feed>) {
        let mut followed = self.followed();
        followed.retain(|followed| followed.feed.strong_count() > 0);
        if let ConnectionState::Closed { reason } = &*self.state.borrow() {
            // Nobody looks any more.
            return feed.end(Ended::Disconnected(reason.clone()));
        }
        followed.push(Followed { call, feed: Arc::downgrade(feed) });
        drop(followed);
        // Its connection may have ended since: then nobody has seen it when that was looked at.
        if feed.attached().is_none() {
            self.forsaken.notify_one();
        }
    }

    fn followed(&self) -> MutexGuard<'_, Vec<Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that wait to be made anew.
    fn waiting(&self) -> Vec<(Invocation, Arc<Feed>)> {
        let mut followed = self.followed();
        followed
            .retain(|followed| followed.feed.upgrade().is_some_and(|feed| feed.ended().is_none()));
        let waits = |followed: &Followed| {
            let feed = followed.feed.upgrade().filter(|feed| feed.attached().is_none())?;
            Some((followed.call.clone(), feed))
        };
        followed.iter().filter_map(waits).collect()
    }

    /// Makes the subscriptions anew that have none.
    async fn resubscribe(&self, peer: &Peer, reason: &Arc<str>) {
        let again = |(call, feed): (Invocation, Arc<Feed>)| async move {
            match peer.link().clone().follow(call, feed.clone(), Some(reason.clone())).await {
                Ok(()) | Err(CallError::Closed(_) | CallError::Interrupted(_)) => {}
                Err(CallError::Rpc(error)) => feed.end(Ended::Failed(error)),
                Err(other) => feed.end(Ended::Disconnected(other.to_string().into())),
            }
        };
        join_all(self.waiting().into_iter().map(again)).await;
    }

    pub(super) async fn connect(&self) -> Result<Client, ConnectError> {
        self.builder.clone().connect_once(&self.endpoint).await
    }

    pub(super) fn enter(&self, peer: Peer) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer);
        self.state.send_replace(ConnectionState::Connected);
    }

    fn end(&self, reason: &Arc<str>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.state.send_replace(ConnectionState::Closed { reason: reason.clone() });
        let followed = std::mem::take(&mut *self.followed());
        for feed in followed.iter().filter_map(|followed| followed.feed.upgrade()) {
            feed.end(Ended::Disconnected(reason.clone()));
        }
    }
}

/// Keeps a connection there is, and makes the next, until nobody wants one.
pub(super) async fn supervise(core: Arc<Core>, first: Option<Client>) {
    let mut reason: Arc<str> = "it is new".into();
    let mut connection = first;
    let mut trying = Trying::new(&core.policy);
    loop {
        let client = match connection.take() {
            Some(client) => client,
            None => match come_back(&core, &mut trying, &reason).await {
                Ok(client) => client,
                Err(last) => return core.end(&last),
            },
        };
        let Some(peer) = client.peer() else { return core.end(&"it has no connection".into()) };
        core.enter(peer.clone());
        let since = Instant::now();
        tokio::select! {
            ended = serve(&core, &peer, &reason) => reason = ended,
            () = core.unwanted.cancelled() => {
                client.close().await;
                return core.end(&"closed".into());
            }
        }
        // A server that takes a connection and closes it at once is not there yet.
        if since.elapsed() >= core.policy.longest.min(SETTLED) {
            trying = Trying::new(&core.policy);
        }
    }
}

/// What a connection has lived for that counts as one.
const SETTLED: Duration = Duration::from_secs(10);

/// Attempts in a row.
struct Trying {
    pauses: Backoff,
    attempt: u32,
}

impl Trying {
    fn new(policy: &Reconnect) -> Self {
        Self { pauses: Backoff::new(policy), attempt: 0 }
    }
}

/// Sees to the subscriptions while there is a connection. Why it ended.
async fn serve(core: &Core, peer: &Peer, gap: &Arc<str>) -> Arc<str> {
    let subscribing = async {
        loop {
            core.resubscribe(peer, gap).await;
            core.forsaken.notified().await;
        }
    };
    tokio::select! {
        reason = peer.closed() => reason,
        () = subscribing => "it has no end".into(),
    }
}

/// The next connection, or why there is none.
async fn come_back(
    core: &Core,
    trying: &mut Trying,
    reason: &Arc<str>,
) -> Result<Client, Arc<str>> {
    let mut reason = reason.clone();
    let most = core.policy.attempts.unwrap_or(u32::MAX);
    while trying.attempt < most {
        trying.attempt += 1;
        let attempt = trying.attempt;
        core.state.send_replace(ConnectionState::Reconnecting { attempt, reason: reason.clone() });
        let pause = trying.pauses.pause();
        let connecting = async {
            sleep(pause).await;
            core.connect().await
        };
        let tried = tokio::select! {
            tried = connecting => tried,
            () = core.unwanted.cancelled() => return Err("closed".into()),
        };
        match tried {
            Ok(client) => return Ok(client),
            Err(error) => {
                reason = error.in_full().into();
                tracing::debug!(attempt, %reason, "not connected");
            }
        }
    }
    Err(format!("gave up after {most} attempts: {reason}").into())
}
