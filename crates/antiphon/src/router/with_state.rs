//! Closures that share one state.

use antiphon_core::ErrorObject;
use futures_core::Stream;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Router;
use crate::context::Context;
use crate::error::IntoErrorObject;
use crate::subscription::{Sink, Topic};

/// Builds a [`Router`] whose functions share one state: each gets a clone of it after its params.
///
/// Created by [`Router::with_state`], and converted by [`into_router`](Self::into_router). Pass an `Arc`,
/// or another handle that is cheap to clone.
///
/// ```
/// use antiphon::{Client, Context, ErrorObject, Router};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Board { cards: Mutex<Vec<String>> }
///
/// async fn add(
///     (card,): (String,),
///     board: Arc<Board>,
///     _cx: Context,
/// ) -> Result<usize, ErrorObject> {
///     let mut cards = board.cards.lock().map_err(|_| ErrorObject::internal_error())?;
///     cards.push(card);
///     Ok(cards.len())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let board = Arc::new(Board::default());
/// let router = Router::with_state(board.clone())
///     .method("add", add)
///     .blocking("count", |(): (), board: Arc<Board>, _cx: Context| {
///         Ok(board.cards.lock().map_err(|_| ErrorObject::internal_error())?.len())
///     })
///     .into_router();
/// let client = Client::in_process(router);
/// assert_eq!(client.call::<usize>("add", ["write the tests"]).await?, 1);
/// assert_eq!(client.call::<usize>("count", ()).await?, 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "`into_router` returns the router"]
pub struct StatefulRouter<S> {
    state: S,
    router: Router,
}

impl Router {
    /// Starts a router whose functions share this state. See [`StatefulRouter`].
    pub fn with_state<S: Clone + Send + Sync + 'static>(state: S) -> StatefulRouter<S> {
        StatefulRouter { state, router: Self::new() }
    }
}

impl<S: Clone + Send + Sync + 'static> StatefulRouter<S> {
    /// Serves a method: `|params, state, cx| async { Ok(result) }`. See [`Router::method`].
    ///
    /// # Panics
    /// Panics if the method is already registered.
    pub fn method<P, R, F, Fut>(self, name: &str, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
        F: Fn(P, S, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ErrorObject>> + Send + 'static,
    {
        self.add(|router, state| {
            router.method(name, move |params, cx| function(params, state.clone(), cx))
        })
    }

    /// Serves a method that blocks: `|params, state, cx| Ok(result)`. See [`Router::blocking`].
    ///
    /// # Panics
    /// Panics if the method is already registered.
    pub fn blocking<P, R, F>(self, name: &str, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
        F: Fn(P, S, Context) -> Result<R, ErrorObject> + Send + Sync + 'static,
    {
        self.add(|router, state| {
            router.blocking(name, move |params, cx| function(params, state.clone(), cx))
        })
    }

    /// Serves a notification: `|params, state, cx| async { }`. See [`Router::notification`].
    ///
    /// # Panics
    /// Panics if the method is already registered.
    pub fn notification<P, F, Fut>(self, name: &str, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(P, S, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.add(|router, state| {
            router.notification(name, move |params, cx| function(params, state.clone(), cx))
        })
    }

    /// Serves a subscription from a stream: `|params, state, cx| async { Ok(stream) }`. See
    /// [`Router::subscription`].
    ///
    /// # Panics
    /// Panics if one of the methods is already registered, and if the items are `Result`s.
    pub fn subscription<P, I, F, Fut>(self, topic: impl Into<Topic>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        I: Stream<Item: Serialize + Send + 'static> + Send + 'static,
        F: Fn(P, S, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<I, ErrorObject>> + Send + 'static,
    {
        self.add(|router, state| {
            router.subscription(topic, move |params, cx| function(params, state.clone(), cx))
        })
    }

    /// Serves a subscription from a stream of `Result`s: `|params, state, cx| async { Ok(stream) }`. See
    /// [`Router::try_subscription`].
    ///
    /// # Panics
    /// Panics if one of the methods is already registered.
    pub fn try_subscription<P, I, T, E, F, Fut>(self, topic: impl Into<Topic>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        I: Stream<Item = Result<T, E>> + Send + 'static,
        T: Serialize + Send + 'static,
        E: IntoErrorObject,
        F: Fn(P, S, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<I, ErrorObject>> + Send + 'static,
    {
        self.add(|router, state| {
            router.try_subscription(topic, move |params, cx| function(params, state.clone(), cx))
        })
    }

    /// Serves a subscription with a function that sends items: `|params, sink, state, cx| async { Ok(())
    /// }`. See [`Router::subscription_with`].
    ///
    /// # Panics
    /// Panics if one of the methods is already registered.
    pub fn subscription_with<P, F, Fut>(self, topic: impl Into<Topic>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(P, Sink, S, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), ErrorObject>> + Send + 'static,
    {
        self.add(|router, state| {
            router.subscription_with(topic, move |params, sink, cx| {
                function(params, sink, state.clone(), cx)
            })
        })
    }

    /// The router, which can be merged, nested and served.
    #[must_use]
    pub fn into_router(self) -> Router {
        self.router
    }

    fn add(self, register: impl FnOnce(Router, S) -> Router) -> Self {
        let router = register(self.router, self.state.clone());
        Self { router, ..self }
    }
}

impl<S: Clone + Send + Sync + 'static> From<StatefulRouter<S>> for Router {
    fn from(stateful: StatefulRouter<S>) -> Self {
        stateful.into_router()
    }
}
