//! One call to a service, made as soon as that service is ready.
//!
//! A service is polled for readiness only when a call has reached it. So a call that an outer layer
//! rejects does not reserve capacity in an inner service.

use std::fmt;
use std::pin::Pin;
use std::task::{Context as Poller, Poll, Waker, ready};

use antiphon_core::{ErrorObject, RawJson};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::layer_call::convert_error;
use super::{CallService, LayerCall};

pin_project! {
    /// The future of one call to a service: rejected, waiting until the service is ready, or called.
    pub struct ReadyCall<S, R>
    where
        S: Service<R>,
        R: LayerCall,
    {
        #[pin]
        state: ReadyState<S, R>,
    }
}

pin_project! {
    #[project = ReadyStateProjection]
    enum ReadyState<S, R>
    where
        S: Service<R>,
        R: LayerCall,
    {
        Rejected { error: Option<R::Error> },
        Waiting { service: S, request: Option<R> },
        Called { #[pin] future: S::Future },
    }
}

impl<S: CallService<R>, R: LayerCall> ReadyCall<S, R> {
    /// Calls the service at once if it is ready.
    ///
    /// A service that is not ready moves into the future, because it may already be queued for
    /// capacity. A fresh clone replaces it.
    pub(crate) fn new(service: &mut S, request: R) -> Self {
        let state = match service.poll_ready(&mut Poller::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => ReadyState::Called { future: service.call(request) },
            Poll::Ready(Err(error)) => {
                ReadyState::Rejected { error: Some(convert_error::<R, _>(error)) }
            }
            Poll::Pending => {
                let fresh = service.clone();
                let service = std::mem::replace(service, fresh);
                ReadyState::Waiting { service, request: Some(request) }
            }
        };
        Self { state }
    }

    /// Fails with this error, although the service may have been called.
    pub(crate) fn failed(error: ErrorObject) -> Self {
        Self { state: ReadyState::Rejected { error: Some(R::from_box_error(error.into())) } }
    }

    /// Fails with this error, without a call.
    pub(crate) fn rejected(error: ErrorObject) -> Self {
        Self { state: ReadyState::Rejected { error: Some(R::rejected(error)) } }
    }
}

impl<S: CallService<R>, R: LayerCall> Future for ReadyCall<S, R> {
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                ReadyStateProjection::Called { future } => {
                    return future.poll(poller).map_err(|error| convert_error::<R, _>(error));
                }
                ReadyStateProjection::Rejected { error } => match error.take() {
                    Some(error) => return Poll::Ready(Err(error)),
                    None => return Poll::Pending,
                },
                ReadyStateProjection::Waiting { service, request } => {
                    let readiness = ready!(service.poll_ready(poller));
                    match (readiness, request.take()) {
                        (Ok(()), Some(request)) => {
                            ReadyState::Called { future: service.call(request) }
                        }
                        (Err(error), _) => return Poll::Ready(Err(convert_error::<R, _>(error))),
                        (Ok(()), None) => return Poll::Pending,
                    }
                }
            };
            state.set(next);
        }
    }
}

impl<S: Service<R>, R: LayerCall> fmt::Debug for ReadyCall<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyCall").finish_non_exhaustive()
    }
}
