//! Calls over whatever connection there is.

use std::sync::Arc;

use antiphon_core::RawJson;
use tokio::sync::watch;

use super::supervisor::{Core, supervise};
use super::{ConnectionState, Reconnect};
use crate::BoxFuture;
use crate::call::{BatchEntry, CallError, Caller, Invocation, Peer, Watch};
use crate::client::{Client, ClientBuilder, ConnectError};
use crate::endpoint::Endpoint;
use crate::subscription::Follower;

/// A client's way to a server that may go and come back. Dropped, it closes.
pub(crate) struct Lasting {
    core: Arc<Core>,
}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.core.unwanted.cancel();
    }
}

impl Lasting {
    /// Connects, and stays connected.
    pub(crate) async fn connect(
        builder: ClientBuilder,
        endpoint: &Endpoint,
        policy: Reconnect,
    ) -> Result<Arc<Self>, ConnectError> {
        let core = Core::new(builder.kept_alive(), endpoint.clone(), policy);
        let first = match core.connect().await {
            Ok(client) => Some(client),
            Err(ConnectError::Failed { .. }) if core.policy.at_first => None,
            Err(error) => return Err(error),
        };
        if let Some(peer) = first.as_ref().and_then(Client::peer) {
            core.enter(peer);
        }
        tokio::spawn(supervise(core.clone(), first));
        Ok(Arc::new(Self { core }))
    }

    pub(crate) fn peer(&self) -> Option<Peer> {
        self.core.current()
    }

    pub(crate) fn states(&self) -> watch::Receiver<ConnectionState> {
        self.core.state.subscribe()
    }

    /// Closes, and waits until that is done.
    pub(crate) async fn close(&self) {
        self.core.unwanted.cancel();
        let mut states = self.states();
        let closed = |state: &ConnectionState| matches!(state, ConnectionState::Closed { .. });
        let _ = states.wait_for(closed).await;
    }

    /// Calls by this until it is answered, or lost in a way that is not to be repeated.
    async fn persist<T>(
        &self,
        is_idempotent: bool,
        call: impl Fn(Peer) -> BoxFuture<'static, Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let mut retries = 0;
        loop {
            let peer = self.core.connected().await?;
            match call(peer.clone()).await {
                // It was never sent. The connection may still be at its end.
                Err(CallError::Closed(_)) => {}
                Err(CallError::Interrupted(_))
                    if is_idempotent && retries < self.core.policy.retries =>
                {
                    retries += 1;
                }
                outcome => return outcome,
            }
            peer.closed().await;
        }
    }

    fn is_idempotent(&self, call: &Invocation) -> bool {
        self.core.policy.is_idempotent(call.method.as_str())
    }
}

/// What a batch that was interrupted as a whole gives: the interruption itself.
fn whole(
    results: Vec<Result<RawJson, CallError>>,
) -> Result<Vec<Result<RawJson, CallError>>, CallError> {
    let all = results.iter().all(|result| matches!(result, Err(CallError::Interrupted(_))));
    match results.first() {
        Some(Err(CallError::Interrupted(reason))) if all => {
            Err(CallError::Interrupted(reason.clone()))
        }
        _ => Ok(results),
    }
}

impl Caller for Arc<Lasting> {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        let again = self.is_idempotent(&call);
        Box::pin(self.persist(again, move |peer| {
            let call = call.clone();
            Box::pin(async move { peer.send(call).await })
        }))
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(self.persist(false, move |peer| {
            let notification = notification.clone();
            Box::pin(async move { peer.post(notification).await })
        }))
    }

    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        let again = self.is_idempotent(&call);
        Box::pin(self.persist(again, move |peer| {
            let (call, watch) = (call.clone(), watch.clone());
            Box::pin(async move { peer.send_watched(call, watch).await })
        }))
    }

    fn subscribe(
        &self,
        call: Invocation,
        follower: Follower,
    ) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            let feed = follower.0;
            feed.survive();
            let (again, to) = (call.clone(), feed.clone());
            // Whoever asks twice has one all the same: the first is gone with its connection.
            self.persist(true, move |peer| {
                let (again, to) = (again.clone(), to.clone());
                Box::pin(async move { peer.link().clone().follow(again, to, None).await })
            })
            .await?;
            self.core.follow(call, &feed);
            Ok(())
        })
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        Box::pin(async move {
            let again = entries.iter().all(|entry| {
                let (BatchEntry::Call(call) | BatchEntry::Notification(call)) = entry;
                self.is_idempotent(call)
            });
            let is_call = |entry: &&BatchEntry| matches!(entry, BatchEntry::Call(_));
            let count = entries.iter().filter(is_call).count();
            let sent = self.persist(again, move |peer| {
                let entries = entries.clone();
                Box::pin(async move { whole(peer.send_batch(entries).await?) })
            });
            match sent.await {
                Err(CallError::Interrupted(reason)) => {
                    Ok((0..count).map(|_| Err(CallError::Interrupted(reason.clone()))).collect())
                }
                outcome => outcome,
            }
        })
    }
}

impl Client {
    /// A client of this.
    pub(crate) fn lasting(lasting: Arc<Lasting>, timeout: Option<std::time::Duration>) -> Self {
        Self::new(Arc::new(lasting.clone()), timeout, crate::client::Line::Lasting(lasting))
    }
}
