//! What serves calls.

use std::sync::Arc;

use antiphon_core::Outcome;
use tower_layer::Layer;

use crate::BoxFuture;
use crate::call::{Invocation, Peer};
use crate::context::Context;
use crate::service::{HandlerService, Layered};

/// Serves calls and notifications. [`Router`](crate::Router) is one; implement it to see every
/// message before any routing.
///
/// A handler is entered in arrival order and runs in place until it first waits; only then does it
/// become a task of its own. So do not block: hand long computations to `spawn_blocking`.
pub trait Handler: Send + Sync + 'static {
    /// Serves a Request. Its one answer is the outcome; a panic answers -32603.
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome>;

    /// Serves a Notification. The next message waits until it is done.
    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()>;

    /// Makes the handler of one connection, before its first message is read. `None`, the default,
    /// means that this handler serves every connection; see [`PerConnection`](crate::PerConnection).
    fn for_connection(&self, peer: &Peer) -> Option<Arc<dyn Handler>> {
        let _ = peer;
        None
    }

    /// Puts a `tower` layer around each call and notification, those of a batch one by one. The layer
    /// added last is the outermost: it sees a call first.
    ///
    /// ```
    /// use antiphon::layer::{Filter, Timeout};
    /// use antiphon::{Context, Handler, Router};
    /// use std::time::Duration;
    ///
    /// let router = Router::new().method("ping", |(): (), _cx: Context| async {
    ///     Ok("pong")
    /// });
    /// let service = router
    ///     .layer(Timeout::new(Duration::from_secs(5)))
    ///     .layer(Filter::new().deny(["debug.*"]));
    /// ```
    fn layer<L: Layer<HandlerService>>(self, layer: L) -> Layered<L::Service>
    where
        Self: Sized,
    {
        Layered::new(layer.layer(HandlerService::new(self)))
    }
}

impl<H: Handler + ?Sized> Handler for Arc<H> {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        (**self).call(call, cx)
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        (**self).notify(notification, cx)
    }

    fn for_connection(&self, peer: &Peer) -> Option<Arc<dyn Handler>> {
        (**self).for_connection(peer)
    }
}
