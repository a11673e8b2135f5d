//! Open subscriptions, shared by all clients that read a resource or have subscribed to it.
//!
//! A subscription is opened for the first reader or subscriber, and closed after a while without any. Only the newest item
//! is kept. The number of open subscriptions is limited.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon::{CallError, Client, ErrorChain, Overflow, RawJson, SubscriptionError, Topic};
use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::{McpServer, RequestError};

/// The settings of open subscriptions.
#[derive(Clone, Debug)]
pub(super) struct FeedSettings {
    pub(super) max_open: usize,
    pub(super) idle: Duration,
    pub(super) first_item: Duration,
    pub(super) update_interval: Duration,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            max_open: 64,
            idle: Duration::from_secs(30),
            first_item: Duration::from_secs(5),
            update_interval: Duration::from_millis(100),
        }
    }
}

/// A resource, and the subscription that it needs.
#[derive(Clone, Debug)]
pub(super) struct FeedRequest {
    pub(super) uri: String,
    pub(super) topic: Topic,
    pub(super) params: Option<RawJson>,
}

/// The open subscriptions of one service.
#[derive(Clone)]
pub(super) struct Feeds(Arc<FeedsState>);

struct FeedsState {
    client: Client,
    settings: FeedSettings,
    timeout: Option<Duration>,
    open: Mutex<HashMap<String, Arc<Feed>>>,
}

/// One open subscription.
struct Feed {
    newest: watch::Sender<Newest>,
    last_use: Mutex<Instant>,
}

/// What is known of a subscription.
#[derive(Clone, Default)]
struct Newest {
    item: Option<RawJson>,
    /// How it has ended.
    ended: Option<Result<(), FeedError>>,
}

/// The reason why a subscription has no items.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the subscription of the service failed: {0}")]
pub(super) struct FeedError(String);

impl FeedError {
    fn new(error: &(dyn std::error::Error + 'static)) -> Self {
        Self(ErrorChain(error).to_string())
    }
}

impl Feeds {
    pub(super) fn new(client: Client, settings: FeedSettings, timeout: Option<Duration>) -> Self {
        let open = Mutex::default();
        Self(Arc::new(FeedsState { client, settings, timeout, open }))
    }

    /// Returns the newest item; waits a while for the first one.
    pub(super) async fn newest(
        &self,
        request: &FeedRequest,
        server: &McpServer,
    ) -> Result<Option<RawJson>, RequestError> {
        let feed = self.open(request, server)?;
        let mut newest = feed.newest.subscribe();
        let is_known = |newest: &Newest| newest.item.is_some() || newest.ended.is_some();
        let known = timeout(self.0.settings.first_item, newest.wait_for(is_known)).await;
        let Newest { item, ended } = match known {
            Ok(Ok(newest)) => newest.clone(),
            // No item yet. The sender is not dropped before the feed.
            Ok(Err(_)) | Err(_) => Newest::default(),
        };
        match (item, ended) {
            (None, Some(Err(error))) => Err(error.into()),
            (item, _) => Ok(item),
        }
    }

    /// Opens the subscription for a client that wants to be told of items.
    pub(super) fn keep_open(&self, request: &FeedRequest, server: &McpServer) {
        if let Err(error) = self.open(request, server) {
            tracing::warn!(uri = request.uri, %error, "a client is not told of updates");
        }
    }

    fn open(&self, request: &FeedRequest, server: &McpServer) -> Result<Arc<Feed>, RequestError> {
        let mut open = self.feeds();
        if let Some(feed) = open.get(&request.uri) {
            feed.touch();
            return Ok(feed.clone());
        }
        if open.len() >= self.0.settings.max_open {
            return Err(FeedError(format!(
                "{} subscriptions are open, which is the limit; try again later",
                open.len()
            ))
            .into());
        }
        let feed = Arc::new(Feed {
            newest: watch::Sender::new(Newest::default()),
            last_use: Mutex::new(Instant::now()),
        });
        open.insert(request.uri.clone(), feed.clone());
        let following = Following {
            feeds: self.clone(),
            request: request.clone(),
            server: server.clone(),
            feed: feed.clone(),
        };
        tokio::spawn(following.run());
        Ok(feed)
    }

    fn feeds(&self) -> MutexGuard<'_, HashMap<String, Arc<Feed>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Feeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeds").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl Feed {
    fn touch(&self) {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last_use(&self) -> Instant {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that follows one subscription.
struct Following {
    feeds: Feeds,
    request: FeedRequest,
    server: McpServer,
    feed: Arc<Feed>,
}

impl Following {
    async fn run(self) {
        let ended = self.follow().await;
        if let Err(error) = &ended {
            tracing::info!(uri = self.request.uri, %error, "a resource has lost its source");
        }
        self.feeds.feeds().remove(&self.request.uri);
        let has_failed = ended.is_err();
        self.feed.newest.send_modify(|newest| newest.ended = Some(ended));
        if has_failed {
            // A client that reads again opens it again, or gets the reason.
            self.server.resource_updated(&self.request.uri);
        }
    }

    /// Follows the subscription until it ends, or until nobody is interested.
    async fn follow(&self) -> Result<(), FeedError> {
        let state = &*self.feeds.0;
        let mut items = self.subscribe().await.map_err(|error| FeedError::new(&error))?;
        loop {
            let idle_at = self.feed.last_use() + state.settings.idle;
            tokio::select! {
                item = items.next() => match item {
                    None => return Ok(()),
                    Some(Ok(item)) => {
                        self.publish(item);
                        sleep(state.settings.update_interval).await;
                    }
                    Some(Err(SubscriptionError::Lost(_) | SubscriptionError::Gap(_))) => {}
                    Some(Err(error)) => return Err(FeedError::new(&error)),
                },
                () = sleep_until(idle_at) => {
                    if self.ends_idle() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn subscribe(&self) -> Result<antiphon::Subscription<RawJson>, CallError> {
        let FeedRequest { topic, params, .. } = &self.request;
        let state = &*self.feeds.0;
        let subscribe = state.client.subscribe::<RawJson>(topic, params);
        // Only the newest item counts.
        let subscribe = subscribe.buffer(1).overflow(Overflow::DropOldest);
        match state.timeout {
            Some(timeout) => subscribe.timeout(timeout).await,
            None => subscribe.await,
        }
    }

    fn publish(&self, item: RawJson) {
        self.feed.newest.send_modify(|newest| newest.item = Some(item));
        self.server.resource_updated(&self.request.uri);
    }

    /// Removes the feed if nobody is interested in it any more. The interest of a subscriber counts as a use.
    fn ends_idle(&self) -> bool {
        let is_subscribed = self.server.is_subscribed(&self.request.uri);
        let mut open = self.feeds.feeds();
        if is_subscribed {
            self.feed.touch();
        }
        // A reader may have come since. It has touched the feed under the lock.
        let is_idle = self.feed.last_use() + self.feeds.0.settings.idle <= Instant::now();
        if is_idle {
            open.remove(&self.request.uri);
        }
        is_idle
    }
}
