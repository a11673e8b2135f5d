//! A handler as a `tower` service, and a service with its layers as a handler.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, Outcome, RawJson};
use tower_layer::Layer;
use tower_service::Service;

use super::{CallService, IncomingCall, ReadyCall};
use crate::BoxFuture;
use crate::call::Invocation;
use crate::context::Context;
use crate::handler::Handler;
use crate::log_excerpt::log_excerpt;

/// A handler as a service: the innermost service of a server's layers.
#[derive(Clone)]
pub struct HandlerService(Arc<dyn Handler>);

impl HandlerService {
    pub(crate) fn new(handler: impl Handler) -> Self {
        Self(Arc::new(handler))
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
        match cx.id() {
            Some(_) => HandlerFuture::Call(self.0.call(call, cx)),
            None => HandlerFuture::Notification(self.0.notify(call, cx)),
        }
    }
}

impl fmt::Debug for HandlerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerService").finish_non_exhaustive()
    }
}

/// The future of a handler, without a second allocation.
pub enum HandlerFuture {
    /// Returns the outcome of a request.
    Call(BoxFuture<'static, Outcome>),
    /// Returns null when a notification is handled.
    Notification(BoxFuture<'static, ()>),
}

impl Future for HandlerFuture {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Outcome> {
        match &mut *self {
            Self::Call(call) => call.as_mut().poll(poller),
            Self::Notification(done) => done.as_mut().poll(poller).map(|()| Ok(RawJson::NULL)),
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
}

impl<S> Layered<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { service }
    }

    /// Adds a layer around the existing ones, without a further allocation per call.
    pub fn layer<L: Layer<S>>(self, layer: L) -> Layered<L::Service> {
        Layered { service: layer.layer(self.service) }
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
}
