//! The subscription of a modern server: a request that is open as long as the subscription.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::{CancellationToken, RawJson};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::{EndOnDrop, Subscription, received};
use crate::client::call::CallOptions;
use crate::client::core::Core;
use crate::client::error::McpError;
use crate::client::inbox::{ServerNotification, Subscribed, locked};
use crate::types::{RequestId, SubscriptionFilter, SubscriptionsListenParams, methods};

/// How often a stream may be lost in succession without a notification.
const MAX_LOSSES: u32 = 6;
/// The first pause before a stream is opened again. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

pub(super) async fn listen(
    core: &Arc<Core>,
    filter: SubscriptionFilter,
) -> Result<Subscription, McpError> {
    let stop = CancellationToken::new();
    let end = EndOnDrop { stop: stop.clone(), legacy: None };
    let events = broadcast::Sender::new(256);
    let (opened, open) = oneshot::channel();
    let failure = Arc::new(Mutex::new(None));
    let listener = Listener {
        core: core.clone(),
        filter,
        events: events.clone(),
        opened: Some(opened),
        losses: 0,
    };
    let receiver = events.subscribe();
    drop(events);
    let slot = failure.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            outcome = listener.run() => *locked(&slot) = outcome.err(),
        }
    });
    let Ok(acknowledged) = open.await else {
        let ended =
            McpError::Protocol("the server ended the subscription before it began".to_owned());
        return Err(locked(&failure).take().unwrap_or(ended));
    };
    let events = Box::pin(received(receiver, failure, Box::pin(std::future::pending())));
    Ok(Subscription { acknowledged, events, _end: end })
}

/// Keeps the subscription of a modern server open.
struct Listener {
    core: Arc<Core>,
    filter: SubscriptionFilter,
    events: broadcast::Sender<ServerNotification>,
    /// Waits for the first acknowledgment.
    opened: Option<oneshot::Sender<SubscriptionFilter>>,
    losses: u32,
}

impl Listener {
    async fn run(mut self) -> Result<(), McpError> {
        loop {
            match self.listen_once().await {
                Ok(()) => return Ok(()),
                Err(error) if self.opened.is_some() || !self.is_loss(&error) => return Err(error),
                Err(error) if self.losses >= MAX_LOSSES => return Err(error),
                Err(error) => tracing::debug!(%error, "the subscription was lost"),
            }
            sleep(FIRST_PAUSE * 2_u32.saturating_pow(self.losses)).await;
            self.losses += 1;
            self.core.reopen_if_lost().await?;
        }
    }

    /// Whether another attempt may succeed.
    fn is_loss(&self, error: &McpError) -> bool {
        let is_lost = error.is_disconnect() || matches!(error, McpError::SessionEnded);
        error.is_loss() || (is_lost && self.core.wire.can_reopen())
    }

    /// Opens the stream, and passes its notifications on until it ends. `Ok` means that the server has ended the
    /// subscription.
    async fn listen_once(&mut self) -> Result<(), McpError> {
        let id = self.core.next_id();
        let key = RequestId::from(id);
        let subscribed = self.core.inbox.subscribe(key.clone());
        let _registered = Registered { core: self.core.clone(), key };
        let mut received = subscribed.events.subscribe();
        let encode = |source| McpError::Encode { method: methods::LISTEN.to_owned(), source };
        let params = RawJson::encode(&SubscriptionsListenParams::new(self.filter.clone()));
        let members: BTreeMap<String, RawJson> =
            params.and_then(|json| json.decode()).map_err(encode)?;
        let options = CallOptions { is_endless: true, ..CallOptions::default() };
        let core = self.core.clone();
        let response = core.send(id, methods::LISTEN, &members, &options);
        let mut response = std::pin::pin!(response);
        let mut is_open = false;
        let acknowledgment = self.core.settings.timeout.unwrap_or(Duration::from_secs(60));
        let timer = core.inbox.clock.timer();
        let late = timer.reach(acknowledgment);
        let mut late = std::pin::pin!(late);
        loop {
            tokio::select! {
                biased;
                () = subscribed.changed.notified() => {
                    is_open = true;
                    self.acknowledged(&subscribed);
                }
                event = received.recv() => match event {
                    Ok(event) => self.pass_on(event),
                    Err(RecvError::Lagged(count)) => self.pass_on(ServerNotification::Lagged(count)),
                    Err(RecvError::Closed) => return Ok(()),
                },
                () = subscribed.ended.cancelled() => return Ok(()),
                () = &mut late, if !is_open => return Err(McpError::TimedOut(acknowledgment)),
                outcome = &mut response => {
                    // All may have arrived at once.
                    if !is_open && locked(&subscribed.acknowledged).is_some() {
                        self.acknowledged(&subscribed);
                    }
                    self.drain(&mut received);
                    return outcome.map(drop);
                }
            }
        }
    }

    fn acknowledged(&mut self, subscribed: &Subscribed) {
        let filter = locked(&subscribed.acknowledged).clone().unwrap_or_default();
        match self.opened.take() {
            Some(opened) => drop(opened.send(filter)),
            None => {
                // Changes in between are unknown, so nothing that is cached can be trusted.
                self.core.inbox.cache.clear();
                let _ = self.events.send(ServerNotification::Resumed);
            }
        }
    }

    fn pass_on(&mut self, event: ServerNotification) {
        self.losses = 0;
        let _ = self.events.send(event);
    }

    /// Passes on what has arrived before the end of the stream.
    fn drain(&mut self, received: &mut broadcast::Receiver<ServerNotification>) {
        while let Ok(event) = received.try_recv() {
            self.pass_on(event);
        }
    }
}

/// Removes a subscription from the inbox on drop.
struct Registered {
    core: Arc<Core>,
    key: RequestId,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.core.inbox.unsubscribe(&self.key);
    }
}
