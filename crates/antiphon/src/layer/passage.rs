//! One call on its way through the next service: refused, waiting until that is ready, or under way.
//!
//! A service is asked whether it is ready only when the call has come to it: who is refused further
//! out takes nobody's place further in.

use std::pin::Pin;
use std::task::{Context as Poller, Poll, Waker, ready};

use antiphon_core::{ErrorObject, RawJson};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::BoxError;
use super::pass::{Passing, adopted};

pin_project! {
    /// A call on its way through a service.
    pub struct Passage<S, R>
    where
        S: Service<R>,
        R: Passing,
    {
        #[pin]
        state: State<S, R>,
    }
}

pin_project! {
    #[project = StateAt]
    enum State<S, R>
    where
        S: Service<R>,
        R: Passing,
    {
        Refused { error: Option<R::Error> },
        Waiting { service: S, request: Option<R> },
        Called { #[pin] future: S::Future },
    }
}

impl<S, R> Passage<S, R>
where
    S: Service<R> + Clone,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    /// Calls the service at once, if it is ready.
    ///
    /// One that is not is taken along, since it may hold a place in a queue already, and a clone
    /// stays in its place.
    pub(crate) fn enter(service: &mut S, request: R) -> Self {
        let state = match service.poll_ready(&mut Poller::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => State::Called { future: service.call(request) },
            Poll::Ready(Err(error)) => State::Refused { error: Some(adopted::<R, _>(error)) },
            Poll::Pending => {
                request.hold_up();
                let fresh = service.clone();
                let service = std::mem::replace(service, fresh);
                State::Waiting { service, request: Some(request) }
            }
        };
        Self { state }
    }

    /// Calls nothing.
    pub(crate) fn refuse(error: ErrorObject) -> Self {
        Self { state: State::Refused { error: Some(R::refused(error)) } }
    }
}

impl<S, R> Future for Passage<S, R>
where
    S: Service<R, Response = RawJson>,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateAt::Called { future } => {
                    return future.poll(poller).map_err(|error| adopted::<R, _>(error));
                }
                StateAt::Refused { error } => match error.take() {
                    Some(error) => return Poll::Ready(Err(error)),
                    None => return Poll::Pending,
                },
                StateAt::Waiting { service, request } => {
                    let readiness = ready!(service.poll_ready(poller));
                    match (readiness, request.take()) {
                        (Ok(()), Some(request)) => State::Called { future: service.call(request) },
                        (Err(error), _) => return Poll::Ready(Err(adopted::<R, _>(error))),
                        (Ok(()), None) => return Poll::Pending,
                    }
                }
            };
            state.set(next);
        }
    }
}

impl<S: Service<R>, R: Passing> std::fmt::Debug for Passage<S, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passage").finish_non_exhaustive()
    }
}
