//! A subscription as who follows it sees it: a stream of items.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};
use std::time::Duration;

use antiphon_core::{ErrorObject, Id, Params, ParamsError, RawJson};
use futures_core::Stream;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{CallError, Caller, Invocation, within};
use crate::BoxFuture;
use crate::same_type::same_type;
use crate::subscription::{Ended, Feed, FeedEvent, Follower, Notice, Overflow, Topic};

/// A subscription that is asked for when it is awaited.
#[must_use = "it is asked for when it is awaited"]
pub struct Subscribe<T> {
    caller: Arc<dyn Caller>,
    topic: Topic,
    params: Result<Option<Params>, ParamsError>,
    timeout: Option<Duration>,
    item: PhantomData<fn() -> T>,
}

impl<T> Subscribe<T> {
    pub(crate) fn new(
        caller: Arc<dyn Caller>,
        topic: Topic,
        params: &(impl Serialize + ?Sized),
        timeout: Option<Duration>,
    ) -> Self {
        let params = Params::encode(params);
        Self { caller, topic, params, timeout, item: PhantomData }
    }

    /// Lets so many items wait to be taken.
    pub fn buffer(mut self, items: usize) -> Self {
        self.topic = self.topic.buffer(items);
        self
    }

    /// What happens to an item that there is no room for.
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.topic = self.topic.overflow(overflow);
        self
    }

    /// Gives up where the reply does not come within this time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl<T: DeserializeOwned + 'static> IntoFuture for Subscribe<T> {
    type Output = Result<Subscription<T>, CallError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let params = self.topic.params(self.params.map_err(CallError::Encode)?);
            let call = Invocation::new(&self.topic.subscribe, params);
            let follower = Follower(Arc::new(Feed::new(self.topic)));
            let subscription = Subscription::new(follower.0.clone());
            within(self.timeout, self.caller.subscribe(call, follower)).await?;
            Ok(subscription)
        })
    }
}

impl<T> fmt::Debug for Subscribe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscribe").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// The items of a subscription, as a `Stream`. Dropped, it unsubscribes.
///
/// It ends with `None` when the source has. What happens on the way is an `Err` between the items, and
/// the items go on behind [`Lost`](SubscriptionError::Lost), [`Gap`](SubscriptionError::Gap) and
/// [`Decode`](SubscriptionError::Decode); the others are the last thing that comes.
///
/// ```
/// use antiphon::{Client, Context, Router, Server};
/// use futures_util::{StreamExt, stream};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let router = Router::new().subscription("countdown", |(from,): (u64,), _cx: Context| async move {
///     Ok(stream::iter((0..from).rev()))
/// });
/// tokio::spawn(Server::bind("memory:countdown").await?.serve(router));
///
/// let client = Client::connect("memory:countdown").await?;
/// let mut countdown = client.subscribe::<u64>("countdown", (3,)).await?;
/// let mut seen = Vec::new();
/// while let Some(n) = countdown.next().await {
///     seen.push(n?);
/// }
/// assert_eq!(seen, [2, 1, 0]);
/// # Ok(()) }
/// ```
#[must_use = "dropped, it unsubscribes"]
pub struct Subscription<T> {
    feed: Arc<Feed>,
    /// Its end has been told.
    is_over: bool,
    item: PhantomData<fn() -> T>,
}

/// What a subscription has to say that is no item.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// So many items went, since they were not taken as fast as they came. More follow.
    #[error("{0} items were lost; take them faster, or let more of them wait")]
    Lost(u64),
    /// The connection was lost, and there is a new one: items of the time between are not coming.
    #[error("there is a gap: the connection was lost ({0}) and made anew")]
    Gap(Arc<str>),
    /// This item is not of the type asked for. More follow.
    #[error("an item is not what was asked for")]
    Decode(#[source] serde_json::Error),
    /// The other side ended it with this error.
    #[error("the subscription failed: {0}")]
    Failed(ErrorObject),
    /// It was ended here, since its items were not taken as fast as they came.
    #[error("the subscription was closed: its items were not taken as fast as they came")]
    TooSlow,
    /// The connection has ended.
    #[error("the subscription ended with its connection: {0}")]
    Disconnected(Arc<str>),
}

impl<T> Subscription<T> {
    fn new(feed: Arc<Feed>) -> Self {
        Self { feed, is_over: false, item: PhantomData }
    }

    /// The id that the other side has given it; `None` while the connection is being made anew.
    pub fn id(&self) -> Option<Id> {
        self.feed.attached().map(|attached| attached.id)
    }

    /// Why the source has ended, once it has and said so.
    pub fn end_reason(&self) -> Option<String> {
        match self.feed.ended()? {
            Ended::Over(reason) => Some(reason),
            _ => None,
        }
    }

    /// Unsubscribes, and waits until the other side has: what it says to it. Items that wait are
    /// dropped.
    pub async fn unsubscribe(self) -> Result<(), CallError> {
        let attached = self.feed.attached();
        let open = self.feed.ended().is_none();
        self.feed.end(Ended::Unsubscribed);
        match attached {
            Some(attached) if open => {
                attached.source.unfollow(&attached.id, &self.feed);
                attached.source.unsubscribe_and_wait(&attached.id, &self.feed.topic).await
            }
            _ => Ok(()),
        }
    }
}

impl<T> Drop for Subscription<T> {
    fn drop(&mut self) {
        self.feed.leave(Ended::Unsubscribed);
    }
}

impl<T: DeserializeOwned + 'static> Stream for Subscription<T> {
    type Item = Result<T, SubscriptionError>;

    fn poll_next(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let next = match ready!(self.feed.poll_next(poller)) {
            FeedEvent::Item(item) => Some(typed(item)),
            FeedEvent::Notice(Notice::Lost(items)) => Some(Err(SubscriptionError::Lost(items))),
            FeedEvent::Notice(Notice::Gap(reason)) => Some(Err(SubscriptionError::Gap(reason))),
            FeedEvent::Ended(ended) => {
                self.is_over = true;
                match ended {
                    Ended::Unsubscribed | Ended::Over(_) => None,
                    Ended::Failed(error) => Some(Err(SubscriptionError::Failed(error))),
                    Ended::TooSlow => Some(Err(SubscriptionError::TooSlow)),
                    Ended::Disconnected(reason) => {
                        Some(Err(SubscriptionError::Disconnected(reason)))
                    }
                }
            }
        };
        Poll::Ready(next)
    }
}

/// The call that ends a subscription.
pub(crate) fn unsubscribe_call(id: &Id, topic: &Topic) -> Invocation {
    Invocation::new(&topic.unsubscribe, Params::parse(&format!("[{id}]")).ok())
}

fn typed<T: DeserializeOwned + 'static>(item: RawJson) -> Result<T, SubscriptionError> {
    same_type::<RawJson, T>(item).or_else(|item| item.decode().map_err(SubscriptionError::Decode))
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("topic", &self.feed.topic)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}
