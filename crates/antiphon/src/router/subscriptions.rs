//! The subscriptions of a router: registration, subscribe and unsubscribe.

use std::sync::Arc;

use antiphon_core::{ErrorObject, Id, Outcome, Params, RawJson};
use futures_core::Stream;
use futures_util::StreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::method_name::MethodName;
use super::serve_subscription;
use super::{MethodRoute, Router, encode};
use crate::BoxFuture;
use crate::context::Context;
use crate::error::IntoErrorObject;
use crate::params;
use crate::same_type::is_result;
use crate::subscription::{Sink, Topic, split_kind};

type OpenFn =
    Arc<dyn Fn(Option<Params>, Context, Arc<Topic>) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// A topic and the function that serves it.
#[derive(Clone)]
pub(super) struct ServedTopic {
    topic: Arc<Topic>,
    open: OpenFn,
}

impl ServedTopic {
    pub(super) fn prefixed(&self, prefix: &str) -> Self {
        Self { topic: Arc::new(self.topic.prefixed(prefix)), open: self.open.clone() }
    }

    #[cfg(feature = "validate")]
    pub(super) fn kind(&self) -> Option<&str> {
        self.topic.kind.as_deref()
    }

    #[cfg(feature = "validate")]
    pub(super) fn guard(&mut self, check: super::ParamsGuard) {
        let inner = self.open.clone();
        self.open = Arc::new(move |params, cx, topic| match check(params.as_ref()) {
            Ok(()) => inner(params, cx, topic),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        });
    }
}

impl Router {
    /// Serves a subscription from a stream: `|params, cx| async { Ok(stream) }`.
    ///
    /// An error is the reply to the subscribe call. The subscription ends when the stream ends. The
    /// stream is dropped when the subscriber unsubscribes or disconnects.
    ///
    /// ```
    /// use antiphon::{Context, Overflow, Router, Topic};
    /// use futures_util::stream;
    ///
    /// let router = Router::new()
    ///     .subscription("numbers", |(from,): (u64,), _cx: Context| async move {
    ///         Ok(stream::iter(from..))
    ///     })
    ///     .subscription(
    ///         Topic::ethereum("newHeads").overflow(Overflow::DropOldest),
    ///         |(): (), _cx: Context| async { Ok(stream::iter(["a head"])) },
    ///     );
    /// ```
    ///
    /// For a stream whose items can fail, use [`try_subscription`](Self::try_subscription).
    ///
    /// # Panics
    /// Panics if one of the methods is already registered, and if the items are `Result`s.
    #[must_use]
    pub fn subscription<P, S, F, Fut>(self, topic: impl Into<Topic>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        S: Stream<Item: Serialize + Send + 'static> + Send + 'static,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, ErrorObject>> + Send + 'static,
    {
        let topic = topic.into();
        assert!(
            !is_result::<S::Item>(),
            "the items of `{}` are `Result`s: use `try_subscription`, or write the item type of the \
             contract as `Result<T, E>`",
            topic.subscribe
        );
        self.subscription_with(topic, move |params: P, sink: Sink, cx| {
            let stream = function(params, cx);
            async move {
                let items = stream.await?;
                send_all(items.map(Ok), &sink).await
            }
        })
    }

    /// Serves a subscription from a stream of `Result`s: `|params, cx| async { Ok(stream) }`.
    ///
    /// Each `Ok` is sent as a plain item. The first `Err` ends the subscription: the subscriber gets the
    /// items before it, and then [`SubscriptionError::Failed`](crate::SubscriptionError::Failed). The
    /// error type implements [`IntoErrorObject`], as an [`ErrorObject`] does.
    ///
    /// ```
    /// use antiphon::{Client, Context, ErrorObject, Router};
    /// use futures_util::{StreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let router = Router::new().try_subscription("rows", |(): (), _cx: Context| async {
    ///     Ok(stream::iter([Ok(1), Ok(2), Err(ErrorObject::new(1, "the table is gone"))]))
    /// });
    /// let mut rows = Client::in_process(router).subscribe::<i64>("rows", ()).await?;
    /// assert_eq!((rows.next().await.unwrap()?, rows.next().await.unwrap()?), (1, 2));
    /// let error = rows.next().await.unwrap().unwrap_err();
    /// assert_eq!(error.as_error::<ErrorObject>().unwrap().message, "the table is gone");
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// Panics if one of the methods is already registered.
    #[must_use]
    pub fn try_subscription<P, S, T, E, F, Fut>(self, topic: impl Into<Topic>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        S: Stream<Item = Result<T, E>> + Send + 'static,
        T: Serialize + Send + 'static,
        E: IntoErrorObject,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, ErrorObject>> + Send + 'static,
    {
        self.subscription_with(topic, move |params: P, sink: Sink, cx| {
            let stream = function(params, cx);
            async move {
                let items = stream.await?;
                // Converted before the await, so the error type need not be `Send`.
                send_all(items.map(|item| item.map_err(IntoErrorObject::into_error_object)), &sink)
                    .await
            }
        })
    }

    /// Serves a subscription with a function that sends items: `|params, sink, cx| async { Ok(()) }`.
    ///
    /// The first item, or [`Sink::accept`], accepts the subscription. An error before that is the reply
    /// to the subscribe call; a later error ends the subscription. The subscription also ends when the
    /// last clone of the sink is dropped.
    ///
    /// ```
    /// use antiphon::{Context, ErrorObject, Router, Sink};
    ///
    /// async fn count((to,): (u64,), sink: Sink, _cx: Context) -> Result<(), ErrorObject> {
    ///     if to > 1_000 {
    ///         return Err(ErrorObject::new(1, "that is too far"));
    ///     }
    ///     for n in 0..to {
    ///         sink.send(n).await?;
    ///     }
    ///     Ok(())
    /// }
    /// let router = Router::new().subscription_with("count", count);
    /// ```
    ///
    /// # Panics
    /// Panics if one of the methods is already registered.
    #[must_use]
    pub fn subscription_with<P, F, Fut>(mut self, topic: impl Into<Topic>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(P, Sink, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), ErrorObject>> + Send + 'static,
    {
        let function = Arc::new(function);
        let open: OpenFn = Arc::new(move |params, cx: Context, topic| {
            let function = function.clone();
            match params::read(params) {
                Err(error) => Box::pin(std::future::ready(Err(error))),
                Ok(params) => {
                    let within = cx.clone();
                    let work = move |sink| -> BoxFuture<'static, _> {
                        Box::pin(function(params, sink, within))
                    };
                    Box::pin(serve_subscription::open(topic, cx, work))
                }
            }
        });
        self.add_topic(ServedTopic { topic: Arc::new(topic.into()), open });
        self
    }

    /// Registers a topic. Topics of different kinds share their methods.
    pub(super) fn add_topic(&mut self, served: ServedTopic) {
        let topic = &served.topic;
        let unsubscribe = MethodName((*topic.unsubscribe).into());
        let unsubscribe_route = self.methods.entry(unsubscribe).or_insert(MethodRoute::Unsubscribe);
        let name = &*topic.unsubscribe;
        assert!(
            matches!(unsubscribe_route, MethodRoute::Unsubscribe),
            "method `{name}` is registered twice"
        );
        let subscribe = MethodName((*topic.subscribe).into());
        let subscribe_route =
            self.methods.entry(subscribe).or_insert(MethodRoute::Subscribe(Vec::new()));
        let name = &*topic.subscribe;
        let is_other = |other: &Topic| {
            other.kind.is_some() && topic.kind.is_some() && other.kind != topic.kind
        };
        let topics = match subscribe_route {
            MethodRoute::Subscribe(topics) if topics.iter().all(|other| is_other(&other.topic)) => {
                Some(topics)
            }
            _ => None,
        };
        assert!(topics.is_some(), "method `{name}` is registered twice");
        if let Some(topics) = topics {
            topics.push(served);
        }
    }
}

/// Accepts a subscription and sends items until the stream ends or fails.
async fn send_all<T: Serialize + Send + 'static>(
    items: impl Stream<Item = Result<T, ErrorObject>> + Send,
    sink: &Sink,
) -> Result<(), ErrorObject> {
    let mut items = std::pin::pin!(items);
    sink.accept();
    while let Some(item) = items.next().await {
        sink.send(item?).await?;
    }
    Ok(())
}

/// Serves a subscribe call.
pub(super) fn subscribe(
    topics: &[ServedTopic],
    params: Option<Params>,
    cx: Context,
) -> BoxFuture<'static, Outcome> {
    if let [ServedTopic { topic, open }] = topics
        && topic.kind.is_none()
    {
        return open(params, cx, topic.clone());
    }
    let split = split_kind(params.as_ref());
    let named =
        |kind: &str| topics.iter().find(|served| served.topic.kind.as_deref() == Some(kind));
    match split.as_ref().and_then(|(kind, rest)| Some((named(kind)?, rest))) {
        Some((ServedTopic { topic, open }, rest)) => open(Some(rest.clone()), cx, topic.clone()),
        None => {
            let kinds: Vec<_> =
                topics.iter().filter_map(|served| served.topic.kind.as_deref()).collect();
            let reason = format!("the first param must be one of {}", kinds.join(", "));
            Box::pin(std::future::ready(Err(params::invalid("[0]", &reason))))
        }
    }
}

/// Serves an unsubscribe call. The result is false if there is no subscription with this id.
pub(super) async fn unsubscribe(params: Option<Params>, cx: Context) -> Outcome {
    #[derive(serde::Deserialize)]
    struct UnsubscribeParams {
        subscription: RawJson,
    }
    let UnsubscribeParams { subscription } = params::read(params)?;
    let id = Id::from_json(subscription);
    encode(id.is_some_and(|id| cx.peer().is_ok_and(|peer| peer.link().end_subscription(&id))))
}
