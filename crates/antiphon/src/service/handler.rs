//! The trait that serves calls.

use std::sync::Arc;

use antiphon_core::Outcome;
use tower_layer::Layer;

use super::{HandlerService, Layered};
use crate::BoxFuture;
use crate::call::{Invocation, Peer};
use crate::context::Context;

/// Serves calls and notifications. [`Router`](crate::Router) implements it. Implement it yourself to see
/// every message before routing.
///
/// Handlers start in order of arrival. A handler runs on the connection's task until its first pending
/// await, then as its own task. So it must not block: use `spawn_blocking` for long computations.
///
/// ```
/// use antiphon::{BoxFuture, Client, Context, ErrorObject, Handler, Invocation, Outcome, RawJson};
///
/// /// Answers each call with the name of its method.
/// struct Echo;
///
/// impl Handler for Echo {
///     fn call(&self, call: Invocation, _cx: Context) -> BoxFuture<'static, Outcome> {
///         Box::pin(async move {
///             RawJson::encode(call.method.as_str()).map_err(ErrorObject::internal)
///         })
///     }
///
///     fn notify(&self, _: Invocation, _: Context) -> BoxFuture<'static, ()> {
///         Box::pin(std::future::ready(()))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::in_process(Echo);
/// assert_eq!(client.call::<String>("hello", ()).await?, "hello");
/// # Ok(()) }
/// ```
///
/// # Cancel safety
/// The future of a handler can be dropped at any await point: when its caller goes away or cancels the
/// call, at a timeout, or at a shutdown. [`Context::spawn`] keeps work running until the connection ends, and
/// `tokio::spawn` beyond that.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "not a handler",
    note = "a service that implements a contract, and a router with state, become handlers with `.into_router()`"
)]
pub trait Handler: Send + Sync + 'static {
    /// Serves a request. The outcome is its response. A panic becomes the error -32603.
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome>;

    /// Serves a notification. A panic is logged.
    ///
    /// Messages after it on the same connection wait until the future completes. One exception: while the
    /// future awaits a response of the peer, later requests start, unless
    /// [`Dialect::strict_order`](crate::Dialect::strict_order) is set. Over HTTP, each message is served
    /// independently.
    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()>;

    /// Creates the handler of one connection, before its first message is read. `None`, the default,
    /// means that this handler serves every connection; see [`PerConnection`](crate::PerConnection).
    fn for_connection(&self, peer: &Peer) -> Option<Arc<dyn Handler>> {
        let _ = peer;
        None
    }

    /// Whether a batch is served. If not, a batch gets one error -32600, and none of its entries runs. The default is
    /// true. Asked for each batch of a connection, for protocols in which the first messages decide it. Over HTTP, an
    /// `HttpPolicy` decides.
    fn accepts_batches(&self) -> bool {
        true
    }

    /// Adds a `tower` layer around each call and notification. The entries of a batch pass it one by one.
    /// The layer that is added last is the outermost and sees a call first.
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
        Layered::new(layer, HandlerService::new(self))
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

    fn accepts_batches(&self) -> bool {
        (**self).accepts_batches()
    }
}
