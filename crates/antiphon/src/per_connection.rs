//! A handler that is created for each connection.

use std::sync::Arc;

use antiphon_core::{ErrorObject, Id, Outcome, RawJson};
use bytes::Bytes;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::call::{BatchEntry, CallError, Intercepted, Invocation, Link, Peer, Stop, Watch};
use crate::connection::Connection;
use crate::context::{Context, Origin};
use crate::dialect::Dialect;
use crate::error::{CloseReason, SpawnError};
use crate::service::Handler;
use crate::subscription::{FollowedSubscription, ServedSubscription, Topic};

/// Creates a handler for each connection, before the first message is read.
///
/// The closure gets the description of the connection and a handle to the peer, so it can keep state per
/// connection and send messages before the first request. It must not block. If it panics, the connection
/// is closed.
///
/// Over HTTP there is no lasting connection: the closure runs for each call, and calls to its peer fail
/// with [`CallError::CannotCallBack`].
///
/// [`Server::serve_with`](crate::Server::serve_with) takes the closure itself. Use this type for functions
/// that take a [`Handler`], such as [`ClientBuilder::handler`](crate::ClientBuilder::handler).
///
/// ```
/// use antiphon::{Context, PerConnection, Router};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let handler = PerConnection::new(|_connection, _peer| {
///     let calls = AtomicU64::new(0);
///     Router::new().method("count", move |(): (), _cx: Context| {
///         let count = calls.fetch_add(1, Ordering::Relaxed) + 1;
///         async move { Ok(count) }
///     })
/// });
/// ```
#[derive(Clone)]
pub struct PerConnection<F>(F);

impl<F, H> PerConnection<F>
where
    F: Fn(&Connection, Peer) -> H + Send + Sync + 'static,
    H: Handler,
{
    /// Creates a handler from a closure that creates one for each connection.
    pub fn new(make: F) -> Self {
        Self(make)
    }

    /// Creates the handler of a single call that has no connection.
    fn for_call(&self, cx: &Context) -> H {
        match cx.origin() {
            Origin::Peer(peer) => (self.0)(peer.connection(), peer.clone()),
            Origin::Request(_) => {
                let link = RequestLink { origin: cx.origin().clone(), ended: ended() };
                (self.0)(cx.connection(), Peer::new(Arc::new(link)))
            }
        }
    }
}

impl<F, H> Handler for PerConnection<F>
where
    F: Fn(&Connection, Peer) -> H + Send + Sync + 'static,
    H: Handler,
{
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        self.for_call(&cx).call(call, cx)
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        self.for_call(&cx).notify(notification, cx)
    }

    fn for_connection(&self, peer: &Peer) -> Option<Arc<dyn Handler>> {
        Some(Arc::new((self.0)(peer.connection(), peer.clone())))
    }
}

impl<F> std::fmt::Debug for PerConnection<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerConnection").finish_non_exhaustive()
    }
}

/// The peer of an HTTP request. Every call to it fails.
struct RequestLink {
    origin: Origin,
    ended: watch::Sender<Option<CloseReason>>,
}

fn ended() -> watch::Sender<Option<CloseReason>> {
    watch::Sender::new(Some("an HTTP request is not a connection".into()))
}

impl RequestLink {
    fn refuse<T>(&self) -> Result<T, CallError> {
        Err(CallError::CannotCallBack(self.origin.connection().transport))
    }

    fn refused<T: Send + 'static>(&self) -> BoxFuture<'static, Result<T, CallError>> {
        Box::pin(std::future::ready(self.refuse()))
    }
}

impl Link for RequestLink {
    fn connection(&self) -> &Connection {
        self.origin.connection()
    }

    fn dialect(&self) -> Option<&Dialect> {
        None
    }

    fn ended(&self) -> &watch::Sender<Option<CloseReason>> {
        &self.ended
    }

    fn stop(&self, _: Stop) {}

    fn send(&self, _: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        self.refused()
    }

    fn send_watched(&self, _: Invocation, _: Watch) -> BoxFuture<'_, Result<RawJson, CallError>> {
        self.refused()
    }

    fn post(&self, _: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        self.refused()
    }

    fn watch_progress(&self, _: Watch) -> Result<Id, CallError> {
        self.refuse()
    }

    fn unwatch_progress(&self, _: &Id) {}

    fn post_now(&self, _: &Invocation) -> Result<(), CallError> {
        self.refuse()
    }

    fn send_batch(
        &self,
        _: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        self.refused()
    }

    fn send_and_forget(&self, _: &Invocation) {}

    fn send_encoded(&self, _: Bytes) -> BoxFuture<'_, Result<(), CallError>> {
        self.refused()
    }

    fn response_bytes(&self) -> usize {
        0
    }

    fn send_after_reply(&self, _: Vec<Bytes>) {}

    fn spawn(self: Arc<Self>, _: BoxFuture<'static, ()>) -> Result<(), SpawnError> {
        Err(SpawnError::NoConnection(self.origin.connection().transport))
    }

    fn send_error(&self, _: &ErrorObject) {}

    fn follow(
        self: Arc<Self>,
        _: Invocation,
        _: Arc<FollowedSubscription>,
        _: Option<CloseReason>,
    ) -> BoxFuture<'static, Result<(), CallError>> {
        self.refused()
    }

    fn serve_subscription(
        self: Arc<Self>,
        _: Arc<Topic>,
        _: CancellationToken,
    ) -> Result<Arc<ServedSubscription>, ErrorObject> {
        self.refuse().map_err(Into::into)
    }

    fn end_subscription(&self, _: &Id) -> bool {
        false
    }

    fn cancel_running(&self, _: &Id) {}

    fn intercept(&self, _: &Invocation) -> Intercepted {
        Intercepted::No
    }
}
