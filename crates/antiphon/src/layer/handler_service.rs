//! From a handler to a `tower` service, and back.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, Outcome, RawJson};
use tower_layer::Layer;
use tower_service::Service;

use super::pass::IncomingCall;
use super::passage::Passage;
use super::trace::short;
use super::{BoxError, always_ready};
use crate::BoxFuture;
use crate::call::Invocation;
use crate::context::Context;
use crate::handler::Handler;

/// A handler as a service: the innermost of all layers.
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
    type Future = Entered;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), ErrorObject>> {
        always_ready(poller)
    }

    fn call(&mut self, IncomingCall { call, cx }: IncomingCall) -> Entered {
        match cx.id() {
            Some(_) => Entered::Call(self.0.call(call, cx)),
            None => Entered::Notification(self.0.notify(call, cx)),
        }
    }
}

impl fmt::Debug for HandlerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerService").finish_non_exhaustive()
    }
}

/// The handler's own future: nothing is boxed again.
pub enum Entered {
    /// It ends with its outcome.
    Call(BoxFuture<'static, Outcome>),
    /// It ends with null.
    Notification(BoxFuture<'static, ()>),
}

impl Future for Entered {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Outcome> {
        match &mut *self {
            Self::Call(call) => call.as_mut().poll(poller),
            Self::Notification(done) => done.as_mut().poll(poller).map(|()| Ok(RawJson::NULL)),
        }
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}

/// A service with its layers as a handler. Each call passes through a clone of them.
#[derive(Clone, Debug)]
pub struct Layered<S> {
    service: S,
}

impl<S> Layered<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { service }
    }

    /// One more layer, around those that are there: it costs no further allocation.
    pub fn layer<L: Layer<S>>(self, layer: L) -> Layered<L::Service> {
        Layered { service: layer.layer(self.service) }
    }
}

impl<S> Handler for Layered<S>
where
    S: Service<IncomingCall, Response = RawJson> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send,
{
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        Box::pin(Passage::enter(&mut self.service.clone(), IncomingCall { call, cx }))
    }

    fn notify(&self, call: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        let name = call.method.clone();
        let done = Passage::enter(&mut self.service.clone(), IncomingCall { call, cx });
        Box::pin(async move {
            // Nobody is told (section 4.1), so the log is.
            if let Err(error) = done.await {
                tracing::debug!(method = short(name.as_str()), %error, "a layer ended a notification");
            }
        })
    }
}
