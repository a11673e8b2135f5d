//! A handler as a `tower` service, and a service with its layers as a handler.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, Outcome, RawJson};
use tower_layer::Layer;
use tower_service::Service;

use super::Handler;
use super::{CallService, IncomingCall, ReadyCall};
use crate::BoxFuture;
use crate::call::{Invocation, Peer};
use crate::context::Context;
use crate::log_excerpt::log_excerpt;

/// A handler as a service: the innermost service of a server's layers.
#[derive(Clone)]
pub struct HandlerService {
    handler: Arc<dyn Handler>,
    /// Whether some connection has a handler of its own. Set by [`Layered`].
    has_connection_handlers: Arc<AtomicBool>,
}

impl HandlerService {
    pub(crate) fn new(handler: impl Handler) -> Self {
        Self { handler: Arc::new(handler), has_connection_handlers: Arc::default() }
    }

    /// The handler that replaces this one for the connection of the call, if there is one.
    #[inline]
    fn connection_handler(&self, cx: &Context) -> Option<Arc<dyn Handler>> {
        if !self.has_connection_handlers.load(Ordering::Relaxed) {
            return None;
        }
        let own = cx.get::<ConnectionHandler>()?;
        let is_for_self =
            Arc::ptr_eq(&own.service.has_connection_handlers, &self.has_connection_handlers);
        is_for_self.then(|| own.handler.clone())
    }
}

impl Service<IncomingCall> for HandlerService {
    type Response = RawJson;
    type Error = ErrorObject;
    type Future = HandlerFuture;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), ErrorObject>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, IncomingCall { call, cx }: IncomingCall) -> HandlerFuture {
        match self.connection_handler(&cx) {
            Some(handler) => HandlerFuture::new(&*handler, call, cx),
            None => HandlerFuture::new(&*self.handler, call, cx),
        }
    }
}

impl fmt::Debug for HandlerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerService").finish_non_exhaustive()
    }
}

/// The future of a handler, without a second allocation.
pub struct HandlerFuture(HandlerFutureKind);

enum HandlerFutureKind {
    /// Returns the outcome of a request.
    Call(BoxFuture<'static, Outcome>),
    /// Returns null when a notification is handled.
    Notification(BoxFuture<'static, ()>),
}

impl HandlerFuture {
    #[inline]
    fn new(handler: &dyn Handler, call: Invocation, cx: Context) -> Self {
        Self(match cx.id() {
            Some(_) => HandlerFutureKind::Call(handler.call(call, cx)),
            None => HandlerFutureKind::Notification(handler.notify(call, cx)),
        })
    }
}

impl Future for HandlerFuture {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Outcome> {
        match &mut self.0 {
            HandlerFutureKind::Call(call) => call.as_mut().poll(poller),
            HandlerFutureKind::Notification(done) => {
                done.as_mut().poll(poller).map(|()| Ok(RawJson::NULL))
            }
        }
    }
}

impl fmt::Debug for HandlerFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerFuture").finish_non_exhaustive()
    }
}

/// A service with its layers, as a handler. Each call goes to a clone of the service.
#[derive(Clone, Debug)]
pub struct Layered<S> {
    service: S,
    innermost: HandlerService,
}

impl<S> Layered<S> {
    pub(crate) fn new<L>(layer: L, innermost: HandlerService) -> Self
    where
        L: Layer<HandlerService, Service = S>,
    {
        Self { service: layer.layer(innermost.clone()), innermost }
    }

    /// Adds a layer around the existing ones, without a further allocation per call.
    pub fn layer<L: Layer<S>>(self, layer: L) -> Layered<L::Service> {
        Layered { service: layer.layer(self.service), innermost: self.innermost }
    }
}

impl<S> Handler for Layered<S>
where
    S: CallService<IncomingCall> + Send + Sync + 'static,
    S::Future: Send,
{
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        Box::pin(ReadyCall::new(&mut self.service.clone(), IncomingCall { call, cx }))
    }

    fn notify(&self, call: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        let method = call.method.clone();
        let done = ReadyCall::new(&mut self.service.clone(), IncomingCall { call, cx });
        Box::pin(async move {
            // A notification has no response (section 4.1), so the error goes to the log.
            if let Err(error) = done.await {
                let method = log_excerpt(method.as_str());
                tracing::debug!(method, %error, "a layer rejected a notification");
            }
        })
    }

    /// Puts the layers around the handler of the connection. The layers themselves are not built again,
    /// so they share their state with the other connections.
    fn for_connection(&self, peer: &Peer) -> Option<Arc<dyn Handler>> {
        let handler = self.innermost.handler.for_connection(peer)?;
        let service = self.innermost.clone();
        service.has_connection_handlers.store(true, Ordering::Relaxed);
        let own = Arc::new(ConnectionHandler { handler, service });
        Some(Arc::new(ConnectionLayered { layered: self.clone(), own }))
    }
}

/// The handler of one connection. The context carries it through the layers to the innermost service.
struct ConnectionHandler {
    handler: Arc<dyn Handler>,
    /// The service whose handler it replaces.
    service: HandlerService,
}

/// Layers around the handler of one connection.
struct ConnectionLayered<S> {
    layered: Layered<S>,
    own: Arc<ConnectionHandler>,
}

impl<S> Handler for ConnectionLayered<S>
where
    Layered<S>: Handler,
    S: Send + Sync + 'static,
{
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        self.layered.call(call, cx.with_shared(self.own.clone()))
    }

    fn notify(&self, call: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        self.layered.notify(call, cx.with_shared(self.own.clone()))
    }
}
