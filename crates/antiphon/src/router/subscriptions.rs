//! The subscriptions of a router: how they are registered, begun and ended.

use std::sync::Arc;

use antiphon_core::{ErrorObject, Id, Outcome, Params, RawJson};
use futures_core::Stream;
use futures_util::StreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::name::Name;
use super::serve_subscription;
use super::{Entry, Router, encode};
use crate::BoxFuture;
use crate::context::Context;
use crate::params;
use crate::subscription::{Sink, Topic, split_kind};

type Open =
    Arc<dyn Fn(Option<Params>, Context, Arc<Topic>) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// A topic and what serves it.
#[derive(Clone)]
pub(super) struct Offered {
    topic: Arc<Topic>,
    open: Open,
}

impl Offered {
    pub(super) fn prefixed(&self, prefix: &str) -> Self {
        Self { topic: Arc::new(self.topic.prefixed(prefix)), open: self.open.clone() }
    }

    #[cfg(feature = "validate")]
    pub(super) fn kind(&self) -> Option<&str> {
        self.topic.kind.as_deref()
    }

    #[cfg(feature = "validate")]
    pub(super) fn guard(&mut self, look: super::Look) {
        let inner = self.open.clone();
        self.open = Arc::new(move |params, cx, topic| match look(params.as_ref()) {
            Ok(()) => inner(params, cx, topic),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        });
    }
}

impl Router {
    /// Serves a subscription by a stream: `|params, cx| async { Ok(stream) }`.
    ///
    /// An error is the reply to who subscribes; the stream's end is the subscription's. The stream is
    /// dropped when its subscriber has enough, or is gone.
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
    /// # Panics
    /// When a name is taken.
    #[must_use]
    pub fn subscription<P, S, F, Fut>(self, topic: impl Into<Topic>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        S: Stream<Item: Serialize + Send + 'static> + Send + 'static,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, ErrorObject>> + Send + 'static,
    {
        self.subscription_with(topic, move |params: P, sink: Sink, cx| {
            let stream = function(params, cx);
            async move {
                let mut stream = std::pin::pin!(stream.await?);
                sink.accept();
                while let Some(item) = stream.next().await {
                    sink.send(item).await?;
                }
                Ok(())
            }
        })
    }

    /// Serves a subscription by a function that sends: `|params, sink, cx| async { Ok(()) }`.
    ///
    /// The first item accepts it, and so does [`Sink::accept`]; an error before that is the reply, and
    /// one after it ends the subscription. It ends when the last clone of the sink is dropped.
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
    /// When a name is taken.
    #[must_use]
    pub fn subscription_with<P, F, Fut>(mut self, topic: impl Into<Topic>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(P, Sink, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), ErrorObject>> + Send + 'static,
    {
        let function = Arc::new(function);
        let open: Open = Arc::new(move |params, cx: Context, topic| {
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
        self.add_topic(Offered { topic: Arc::new(topic.into()), open });
        self
    }

    /// Topics of different kinds share their methods.
    pub(super) fn add_topic(&mut self, offered: Offered) {
        let topic = &offered.topic;
        let unsubscribe = Name((*topic.unsubscribe).into());
        let ends = self.methods.entry(unsubscribe).or_insert(Entry::Unsubscribe);
        let name = &*topic.unsubscribe;
        assert!(matches!(ends, Entry::Unsubscribe), "method `{name}` is registered twice");
        let subscribe = Name((*topic.subscribe).into());
        let begins = self.methods.entry(subscribe).or_insert(Entry::Subscribe(Vec::new()));
        let name = &*topic.subscribe;
        let is_other = |other: &Topic| {
            other.kind.is_some() && topic.kind.is_some() && other.kind != topic.kind
        };
        let topics = match begins {
            Entry::Subscribe(topics) if topics.iter().all(|other| is_other(&other.topic)) => {
                Some(topics)
            }
            _ => None,
        };
        assert!(topics.is_some(), "method `{name}` is registered twice");
        if let Some(topics) = topics {
            topics.push(offered);
        }
    }
}

/// Begins the subscription that these params ask for.
pub(super) fn subscribe(
    topics: &[Offered],
    params: Option<Params>,
    cx: Context,
) -> BoxFuture<'static, Outcome> {
    if let [Offered { topic, open }] = topics
        && topic.kind.is_none()
    {
        return open(params, cx, topic.clone());
    }
    let split = split_kind(params.as_ref());
    let named =
        |kind: &str| topics.iter().find(|offered| offered.topic.kind.as_deref() == Some(kind));
    match split.as_ref().and_then(|(kind, rest)| Some((named(kind)?, rest))) {
        Some((Offered { topic, open }, rest)) => open(Some(rest.clone()), cx, topic.clone()),
        None => {
            let kinds: Vec<_> =
                topics.iter().filter_map(|offered| offered.topic.kind.as_deref()).collect();
            let reason = format!("the first param is one of {}", kinds.join(", "));
            Box::pin(std::future::ready(Err(params::invalid("[0]", &reason))))
        }
    }
}

/// Ends a subscription: true, or false where there is none of this id.
pub(super) async fn unsubscribe(params: Option<Params>, cx: Context) -> Outcome {
    #[derive(serde::Deserialize)]
    struct Which {
        subscription: RawJson,
    }
    let Which { subscription } = params::read(params)?;
    let id = Id::from_json(subscription);
    encode(id.is_some_and(|id| cx.peer().is_ok_and(|peer| peer.link().end_subscription(&id))))
}
