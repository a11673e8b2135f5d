//! From what can be called to a `tower` service, and back: layers around the calls of a client.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Poller, Poll};

use antiphon_core::RawJson;
use tower_service::Service;

use super::muster::{self, Arrival, Seat};
use super::pass::OutgoingCall;
use super::passage::Passage;
use super::{BoxError, always_ready};
use crate::BoxFuture;
use crate::call::Watch;
use crate::call::{BatchEntry, CallError, Caller, Invocation};
use crate::subscription::Follower;

/// What a call of ours is, beside what it calls.
#[derive(Clone)]
pub(super) enum Way {
    Call,
    Notification,
    /// An entry of a batch, and whether it wants no answer.
    Entry(Arc<Seat>, bool),
    Watched(Watch),
    /// Who follows, until it is asked for.
    Subscription(Arc<Mutex<Option<Follower>>>),
}

/// What may stand around the calls of a client: any service of this shape, and every layer of ours.
pub trait Places:
    Service<OutgoingCall, Response = RawJson, Error: Into<BoxError> + 'static, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Places for S where
    S: Service<OutgoingCall, Response = RawJson, Error: Into<BoxError> + 'static, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// What can be called as a service: the innermost of all layers of a client.
#[derive(Clone)]
pub struct CallerService(Arc<dyn Caller>);

impl CallerService {
    pub(crate) fn new(caller: Arc<dyn Caller>) -> Self {
        Self(caller)
    }
}

impl Service<OutgoingCall> for CallerService {
    type Response = RawJson;
    type Error = CallError;
    type Future = BoxFuture<'static, Result<RawJson, CallError>>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), CallError>> {
        always_ready(poller)
    }

    fn call(&mut self, OutgoingCall { call, way }: OutgoingCall) -> Self::Future {
        let caller = self.0.clone();
        let done = |posted: Result<(), CallError>| posted.map(|()| RawJson::NULL);
        match way {
            Way::Call => Box::pin(async move { caller.send(call).await }),
            Way::Notification => Box::pin(async move { done(caller.post(call).await) }),
            Way::Watched(watch) => Box::pin(async move { caller.send_watched(call, watch).await }),
            Way::Entry(seat, is_notification) => {
                let arrival = seat.arrive(call, is_notification);
                Box::pin(async move {
                    match arrival {
                        Arrival::InTime(answer) => {
                            answer.await.unwrap_or_else(|_| Err(muster::gone()))
                        }
                        Arrival::Late(call) if is_notification => done(caller.post(call).await),
                        Arrival::Late(call) => caller.send(call).await,
                    }
                })
            }
            Way::Subscription(follower) => {
                let follower = follower.lock().unwrap_or_else(PoisonError::into_inner).take();
                Box::pin(async move {
                    match follower {
                        Some(follower) => done(caller.subscribe(call, follower).await),
                        None => Err(CallError::Transport(ASKED_TWICE.to_owned())),
                    }
                })
            }
        }
    }
}

const ASKED_TWICE: &str = "a layer asked for a subscription twice; subscribe again instead";

impl fmt::Debug for CallerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerService").finish_non_exhaustive()
    }
}

/// A service with its layers as something that can be called.
pub(crate) struct LayeredCaller<S> {
    service: S,
    /// Below all layers, for batches that have passed them.
    inner: Arc<dyn Caller>,
}

impl<S> LayeredCaller<S> {
    pub(crate) fn new(service: S, inner: Arc<dyn Caller>) -> Self {
        Self { service, inner }
    }
}

impl<S: Places> LayeredCaller<S> {
    fn place(&self, call: Invocation, way: Way) -> Passage<S, OutgoingCall> {
        Passage::enter(&mut self.service.clone(), OutgoingCall { call, way })
    }
}

impl<S: Places> Caller for LayeredCaller<S> {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(self.place(call, Way::Call))
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        let posted = self.place(notification, Way::Notification);
        Box::pin(async move { posted.await.map(drop) })
    }

    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(self.place(call, Way::Watched(watch)))
    }

    fn subscribe(
        &self,
        call: Invocation,
        follower: Follower,
    ) -> BoxFuture<'_, Result<(), CallError>> {
        let follower = Arc::new(Mutex::new(Some(follower)));
        let asked = self.place(call, Way::Subscription(follower));
        Box::pin(async move { asked.await.map(drop) })
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        let pass = |entry, seat| match entry {
            BatchEntry::Call(call) => self.place(call, Way::Entry(seat, false)),
            BatchEntry::Notification(call) => self.place(call, Way::Entry(seat, true)),
        };
        Box::pin(muster::send(entries, pass, &*self.inner))
    }
}
