//! A caller that uses the current connection of a reconnecting client.

use std::sync::Arc;

use antiphon_core::RawJson;
use tokio::sync::watch;

use super::supervisor::{SupervisorState, supervise};
use super::{ConnectionState, Reconnect};
use crate::BoxFuture;
use crate::call::{BatchEntry, CallError, Caller, Invocation, Peer, Watch, deadline};
use crate::client::{Client, ClientBuilder, ConnectError};
use crate::endpoint::Endpoint;
use crate::error::CloseReason;
use crate::subscription::Follower;

/// The caller of a client that reconnects. Dropping it closes the connection.
pub(crate) struct ReconnectingCaller {
    core: Arc<SupervisorState>,
}

impl Drop for ReconnectingCaller {
    fn drop(&mut self) {
        self.core.closed.cancel();
    }
}

impl ReconnectingCaller {
    /// Connects, and starts the task that reconnects.
    pub(crate) async fn connect(
        builder: ClientBuilder,
        endpoint: &Endpoint,
        policy: Reconnect,
    ) -> Result<Arc<Self>, ConnectError> {
        let core = SupervisorState::new(builder.kept_alive(), endpoint.clone(), policy);
        let first = match core.connect().await {
            Ok(client) => Some(client),
            Err(ConnectError::Failed { .. }) if core.policy.wait_for_server => None,
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

    /// Closes the connection, and waits until it is closed.
    pub(crate) async fn close(&self) {
        self.core.closed.cancel();
        let mut states = self.states();
        let closed = |state: &ConnectionState| matches!(state, ConnectionState::Closed { .. });
        let _ = states.wait_for(closed).await;
    }

    /// Repeats this call until it has a response, or an error after which it must not be sent again.
    async fn with_retries<T>(
        &self,
        is_idempotent: bool,
        call: impl Fn(Peer) -> BoxFuture<'static, Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let mut retries = 0;
        loop {
            let connected = match retries {
                0 => self.connected_in_time().await,
                // It was sent before, so at its deadline it just times out.
                _ => self.core.connected().await,
            };
            let peer = connected.map_err(|error| after_retries(retries, error))?;
            match call(peer.clone()).await {
                // It was never sent. The connection may not have ended completely yet.
                Err(CallError::Closed(_)) => {}
                Err(CallError::Interrupted(_))
                    if is_idempotent && retries < self.core.policy.retries =>
                {
                    retries += 1;
                }
                outcome => return outcome.map_err(|error| after_retries(retries, error)),
            }
            peer.closed().await;
        }
    }

    /// The current connection, or the next one, for a call that was never sent.
    async fn connected_in_time(&self) -> Result<Peer, CallError> {
        deadline::wait_to_send(self.core.connected()).await.unwrap_or_else(|limit| {
            let reason = match &*self.core.state.borrow() {
                ConnectionState::Reconnecting { reason, .. } => Some(reason.clone()),
                _ => None,
            };
            let server = self.core.endpoint.server();
            Err(CallError::Unreachable { server, source: deadline::no_connection(limit, reason) })
        })
    }

    fn is_idempotent(&self, call: &Invocation) -> bool {
        self.core.policy.is_idempotent(call.method.as_str())
    }
}

/// The error of a call that was sent this many times before. Even if the last attempt was not sent, an
/// earlier one may have been executed.
fn after_retries(retries: u32, error: CallError) -> CallError {
    match error {
        error if retries == 0 || !error.was_not_sent() => error,
        CallError::Closed(reason) => CallError::Interrupted(reason),
        error => CallError::Interrupted(CloseReason::failed(error)),
    }
}

/// Turns a batch in which every call was interrupted into one interruption.
fn interrupted_as_a_whole(
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

impl Caller for Arc<ReconnectingCaller> {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        let is_idempotent = self.is_idempotent(&call);
        Box::pin(self.with_retries(is_idempotent, move |peer| {
            let call = call.clone();
            Box::pin(async move { peer.send(call).await })
        }))
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(self.with_retries(false, move |peer| {
            let notification = notification.clone();
            Box::pin(async move { peer.post(notification).await })
        }))
    }

    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        let is_idempotent = self.is_idempotent(&call);
        Box::pin(self.with_retries(is_idempotent, move |peer| {
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
            let feed = follower.into_feed();
            feed.set_resubscribes();
            let (subscribe, to) = (call.clone(), feed.clone());
            // Safe to repeat: the first subscription ended with its connection.
            let subscribed = self.with_retries(true, move |peer| {
                let (subscribe, to) = (subscribe.clone(), to.clone());
                Box::pin(async move {
                    peer.link().clone().follow(subscribe, to, None).await?;
                    Ok(peer)
                })
            });
            self.core.follow(call, &feed, subscribed.await?);
            Ok(())
        })
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        Box::pin(async move {
            let is_idempotent = entries.iter().all(|entry| {
                let (BatchEntry::Call(call) | BatchEntry::Notification(call)) = entry;
                self.is_idempotent(call)
            });
            let is_call = |entry: &&BatchEntry| matches!(entry, BatchEntry::Call(_));
            let count = entries.iter().filter(is_call).count();
            let sent = self.with_retries(is_idempotent, move |peer| {
                let entries = entries.clone();
                Box::pin(async move { interrupted_as_a_whole(peer.send_batch(entries).await?) })
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
    /// A client that uses this caller.
    pub(crate) fn reconnecting(
        caller: Arc<ReconnectingCaller>,
        timeout: Option<std::time::Duration>,
    ) -> Self {
        Self::new(
            Arc::new(caller.clone()),
            timeout,
            crate::client::OwnedConnection::Reconnecting(caller),
        )
    }
}
