//! A subscription on the client side: a stream of items.

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
use crate::error::{CloseReason, FromErrorObject};
use crate::same_type::same_type;
use crate::subscription::{
    Ended, FollowedEvent, FollowedSubscription, Follower, Notice, Overflow, Topic,
};

/// A request for a subscription, which is sent when it is awaited.
///
/// # Errors
/// Fails with the error response of the server, or if there is no response within the timeout. See
/// [`CallError`]. HTTP has no subscriptions: it fails with [`CallError::CannotCallBack`].
///
/// # Cancel safety
/// Dropping the future gives up the subscription. If the server accepts it later, the client unsubscribes.
///
/// ```
/// use antiphon::{Client, Overflow, SubscriptionError};
/// use futures_util::StreamExt;
/// use std::time::Duration;
///
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let mut ticks = client
///     .subscribe::<u64>("ticks", (7,))
///     .buffer(16)
///     .overflow(Overflow::DropOldest)
///     .timeout(Duration::from_secs(5))
///     .await?;
/// while let Some(tick) = ticks.next().await {
///     match tick {
///         Ok(tick) => println!("{tick}"),
///         Err(SubscriptionError::Lost(items)) => println!("{items} items were lost"),
///         Err(error) => return Err(error.into()),
///     }
/// }
/// # Ok(()) }
/// ```
#[must_use = "the request is sent when it is awaited"]
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

    /// Sets how many items may wait to be read: at least one. The default is that of the [`Topic`], 256.
    pub fn buffer(mut self, items: usize) -> Self {
        self.topic = self.topic.buffer(items);
        self
    }

    /// Sets what happens to an item when the buffer is full. The default is [`Overflow::Wait`].
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.topic = self.topic.overflow(overflow);
        self
    }

    /// Sets the timeout for the reply to the request.
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
            let feed = Arc::new(FollowedSubscription::new(self.topic));
            let subscription = Subscription::new(feed.clone());
            let follower = Follower::new(feed);
            within(self.timeout, self.caller.subscribe(call, follower)).await?;
            if !subscription.feed.was_attached() {
                return Err(CallError::Layer(NOT_SENT.into()));
            }
            Ok(subscription)
        })
    }
}

const NOT_SENT: &str =
    "the subscribe call has a result but was not sent; a layer must pass it on, or return an error";

impl<T> fmt::Debug for Subscribe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscribe").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// A `Stream` of the items of a subscription. Dropping it unsubscribes.
///
/// The stream ends with `None` when the source ends. Errors appear as `Err` between the items. More items
/// follow after [`Lost`](SubscriptionError::Lost), [`Gap`](SubscriptionError::Gap) and
/// [`Decode`](SubscriptionError::Decode). Any other error is the last element.
///
/// # Cancel safety
/// `next` is cancel safe: dropping its future loses no item, so it may be a branch of `tokio::select!`.
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
#[must_use = "dropping it unsubscribes"]
pub struct Subscription<T> {
    feed: Arc<FollowedSubscription>,
    /// Whether the stream has returned its last element.
    is_done: bool,
    item: PhantomData<fn() -> T>,
}

/// An error in the stream of a subscription.
///
/// ```
/// use antiphon::{Client, ErrorChain, SubscriptionError};
/// use futures_util::StreamExt as _;
///
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let mut ticks = client.subscribe::<u64>("ticks", ()).await?;
/// while let Some(tick) = ticks.next().await {
///     match tick {
///         Ok(tick) => println!("{tick}"),
///         Err(SubscriptionError::Lost(items)) => println!("{items} ticks were lost"),
///         Err(error) => println!("{}", ErrorChain(&error)),
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// This many items were dropped because they were not read fast enough. More items follow.
    #[error("{0} items were lost; read them faster, or raise the buffer size")]
    Lost(u64),
    /// The connection was lost and opened again. The items in between are missing. More items follow.
    #[error(
        "there is a gap: the connection was lost and opened again; items may be missing, so read the current \
         state again"
    )]
    Gap(#[source] CloseReason),
    /// An item does not have the expected type. More items follow.
    #[error("an item does not have the expected type")]
    Decode(#[source] Arc<serde_json::Error>),
    /// The server ended the subscription with this error.
    #[error("the subscription failed")]
    Failed(#[source] ErrorObject),
    /// The subscription was closed on this side because its items were not read fast enough.
    #[error(
        "the subscription was closed: its items were not read fast enough; raise `Topic::buffer` or \
         `Subscribe::buffer`, or use `Overflow::DropOldest`"
    )]
    TooSlow,
    /// The connection has ended.
    #[error("the subscription ended with its connection")]
    Disconnected(#[source] CloseReason),
}

impl SubscriptionError {
    /// Converts the error with which the server ended the subscription into an application error, which
    /// derives `RpcError` or implements [`FromErrorObject`].
    pub fn as_error<E: FromErrorObject>(&self) -> Option<E> {
        match self {
            Self::Failed(error) => E::from_error_object(error),
            _ => None,
        }
    }
}

impl<T> Subscription<T> {
    fn new(feed: Arc<FollowedSubscription>) -> Self {
        Self { feed, is_done: false, item: PhantomData }
    }

    /// The id that the server assigned; `None` while the client reconnects.
    pub fn id(&self) -> Option<Id> {
        self.feed.attached().map(|attached| attached.id)
    }

    /// The reason that the source gave for its end, once it has ended.
    pub fn end_reason(&self) -> Option<String> {
        match self.feed.ended()? {
            Ended::Over(reason) => Some(reason),
            _ => None,
        }
    }

    /// Unsubscribes and waits for the reply of the server. Unread items are dropped. There is no timeout.
    /// Dropping the subscription unsubscribes too, without waiting.
    ///
    /// # Errors
    /// Fails with the error response of the server, or if the connection ends first. A subscription that has
    /// ended already is no error.
    ///
    /// # Cancel safety
    /// If the future is dropped while the write queue is full, the server may not be told. Its further
    /// items are then handled like any other notification.
    pub async fn unsubscribe(self) -> Result<(), CallError> {
        let open = self.feed.ended().is_none();
        // Ended first: a reconnecting client attaches it to no further connection.
        self.feed.end(Ended::Unsubscribed);
        match self.feed.attached() {
            Some(attached) if open => attached.leave_and_wait(&self.feed).await,
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
        if self.is_done {
            return Poll::Ready(None);
        }
        let next = match ready!(self.feed.poll_next(poller)) {
            FollowedEvent::Item(item) => Some(typed(item)),
            FollowedEvent::Notice(Notice::Lost(items)) => Some(Err(SubscriptionError::Lost(items))),
            FollowedEvent::Notice(Notice::Gap(reason)) => Some(Err(SubscriptionError::Gap(reason))),
            FollowedEvent::Ended(ended) => {
                self.is_done = true;
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

fn typed<T: DeserializeOwned + 'static>(item: RawJson) -> Result<T, SubscriptionError> {
    same_type::<RawJson, T>(item)
        .or_else(|item| item.decode().map_err(|error| SubscriptionError::Decode(Arc::new(error))))
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("topic", &self.feed.topic)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}
