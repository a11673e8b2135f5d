//! The `tower` code that all built-in layers share.
//!
//! A built-in layer is a [`Policy`]: a rule that decides what happens to one call. [`PolicyService`]
//! makes a `tower` service of a policy and the service that it wraps.

use std::task::{Context as Poller, Poll};

use antiphon_core::RawJson;
use tower_layer::Layer;
use tower_service::Service;

use super::{Auth, CatchPanic, Concurrency, Filter, Metrics, RateLimit, Timeout, Trace};
use crate::service::LayerCall;

/// The rule of a built-in layer around a service `S`, for calls of type `R`.
pub trait Policy<S, R: LayerCall> {
    /// The future of one call.
    type Future: Future<Output = Result<RawJson, R::Error>>;

    /// Forwards the call to the inner service, or rejects it.
    ///
    /// The inner service may not be ready, so a policy forwards with
    /// [`ReadyCall`](crate::layer::ReadyCall).
    fn call(&self, inner: &mut S, request: R) -> Self::Future;
}

/// A service with a built-in layer around it.
#[derive(Clone, Debug)]
pub struct PolicyService<P, S> {
    policy: P,
    inner: S,
}

impl<P, S, R> Service<R> for PolicyService<P, S>
where
    P: Policy<S, R>,
    R: LayerCall,
{
    type Response = RawJson;
    type Error = R::Error;
    type Future = P::Future;

    /// Always ready: the rule is applied before the call waits for an inner service.
    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), R::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> P::Future {
        self.policy.call(&mut self.inner, request)
    }
}

/// `impl<P: Policy> Layer for P` would break the orphan rule, so each policy is listed.
macro_rules! policy_layers {
    ($($policy:ty),+) => {$(
        impl<S> Layer<S> for $policy {
            type Service = PolicyService<Self, S>;

            fn layer(&self, inner: S) -> Self::Service {
                PolicyService { policy: self.clone(), inner }
            }
        }
    )+};
}

policy_layers!(Auth, CatchPanic, Concurrency, Filter, Metrics, RateLimit, Timeout, Trace);
