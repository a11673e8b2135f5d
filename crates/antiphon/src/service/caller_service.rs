//! A caller as a `tower` service, and a service with its layers as a caller.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context as Poller, Poll};

use antiphon_core::RawJson;
use tower_service::Service;

use super::outgoing_batch;
use super::outgoing_call::OutgoingKind;
use super::{CallService, OutgoingCall, ReadyCall};
use crate::BoxFuture;
use crate::call::{BatchEntry, CallError, Caller, Invocation, Watch};
use crate::subscription::{Follower, UnsubscribeLayers, UnsubscribeRest};

/// Any service that can send the calls of a client: a [`CallerService`], with or without built-in layers
/// around it.
pub trait OutgoingService: CallService<OutgoingCall, Future: Send> + Send + Sync + 'static {}

impl<S> OutgoingService for S where
    S: CallService<OutgoingCall, Future: Send> + Send + Sync + 'static
{
}

/// A caller as a service: the innermost service of a client's layers.
///
/// It does not keep the caller, because a subscription holds the layers until its end and must not keep the
/// client open. Each call keeps the caller that it was made with.
#[derive(Clone)]
pub struct CallerService(Weak<dyn Caller>);

impl CallerService {
    pub(crate) fn new(caller: &Arc<dyn Caller>) -> Self {
        Self(Arc::downgrade(caller))
    }
}

impl Service<OutgoingCall> for CallerService {
    type Response = RawJson;
    type Error = CallError;
    type Future = BoxFuture<'static, Result<RawJson, CallError>>;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, OutgoingCall { call, kind, .. }: OutgoingCall) -> Self::Future {
        let caller = self.0.upgrade().ok_or_else(|| CallError::closed("the client was dropped"));
        match kind {
            OutgoingKind::Call => Box::pin(async move { caller?.send(call).await }),
            OutgoingKind::Notification => Box::pin(async move { null(caller?.post(call).await) }),
            OutgoingKind::Watched(watch) => {
                Box::pin(async move { caller?.send_watched(call, watch).await })
            }
            OutgoingKind::Entry(entry) if entry.is_first_call() => Box::pin(entry.send(call)),
            OutgoingKind::Entry(entry) if entry.is_notification() => {
                Box::pin(async move { null(caller?.post(call).await) })
            }
            OutgoingKind::Entry(_) => Box::pin(async move { caller?.send(call).await }),
            OutgoingKind::Subscription(follower) => {
                let follower = follower.lock().unwrap_or_else(PoisonError::into_inner).take();
                Box::pin(async move {
                    match follower {
                        Some(follower) => null(caller?.subscribe(call, follower).await),
                        None => Err(CallError::Layer(SUBSCRIBED_TWICE.into())),
                    }
                })
            }
            OutgoingKind::Unsubscription(rest) => Box::pin(rest.run(call)),
        }
    }
}

const SUBSCRIBED_TWICE: &str =
    "a layer sent the same subscription twice; call `subscribe` again instead";

fn null(done: Result<(), CallError>) -> Result<RawJson, CallError> {
    done.map(|()| RawJson::NULL)
}

impl fmt::Debug for CallerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerService").finish_non_exhaustive()
    }
}

/// A service with its layers, as a caller. Each call goes to a clone of the service.
///
/// The entries of a batch pass the layers concurrently. Entries that reach the connection in the same
/// poll of the batch are sent as one batch, in their order. An entry that a layer delays is sent
/// later, so an entry can wait for the reply of another one.
pub(crate) struct LayeredCaller<S> {
    service: S,
    /// The caller below all layers, for batches whose entries have passed them.
    inner: Arc<dyn Caller>,
}

impl<S> LayeredCaller<S> {
    pub(crate) fn new(service: S, inner: Arc<dyn Caller>) -> Self {
        Self { service, inner }
    }
}

impl<S: OutgoingService> LayeredCaller<S> {
    fn call(&self, call: Invocation, kind: OutgoingKind) -> ReadyCall<S, OutgoingCall> {
        let request = OutgoingCall { call, kind, _caller: Some(self.inner.clone()) };
        ReadyCall::new(&mut self.service.clone(), request)
    }
}

impl<S: OutgoingService> UnsubscribeLayers for S {
    fn pass(
        &self,
        call: Invocation,
        rest: UnsubscribeRest,
    ) -> BoxFuture<'static, Result<RawJson, CallError>> {
        let kind = OutgoingKind::Unsubscription(rest);
        Box::pin(ReadyCall::new(&mut self.clone(), OutgoingCall { call, kind, _caller: None }))
    }
}

impl<S: OutgoingService> Caller for LayeredCaller<S> {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(self.call(call, OutgoingKind::Call))
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        let sent = self.call(notification, OutgoingKind::Notification);
        Box::pin(async move { sent.await.map(drop) })
    }

    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(self.call(call, OutgoingKind::Watched(watch)))
    }

    fn subscribe(
        &self,
        call: Invocation,
        mut follower: Follower,
    ) -> BoxFuture<'_, Result<(), CallError>> {
        follower.pass(Arc::new(self.service.clone()));
        let follower = Arc::new(Mutex::new(Some(follower)));
        let reply = self.call(call, OutgoingKind::Subscription(follower));
        Box::pin(async move { reply.await.map(drop) })
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        let pass_layers = |call, sender| self.call(call, OutgoingKind::Entry(sender));
        Box::pin(outgoing_batch::send(entries, pass_layers, &*self.inner))
    }
}
