//! `tower` layers around each call, and the built-in layers of this crate.
//!
//! Layers see single calls, notifications and the entries of batches alike: each passes every layer once.
//!
//! [`Handler::layer`](crate::Handler::layer) adds a layer to a server. The request type is
//! [`IncomingCall`], the response type is [`RawJson`](crate::RawJson), and the error is any type that
//! converts into `Box<dyn Error + Send + Sync>`. So the layers of the `tower` ecosystem work, such as
//! `tower::limit::ConcurrencyLimitLayer`. An error of type [`ErrorObject`](crate::ErrorObject) is sent to
//! the client unchanged. Any other error is logged, and the client receives -32603.
//!
//! `ServiceBuilder::map_err` maps the errors of other layers to the ones that the client receives:
//!
//! ```
//! use antiphon::layer::BoxError;
//! use antiphon::{CallError, Client, Code, Context, ErrorObject, Handler, Router};
//! use std::time::Duration;
//! use tower::ServiceBuilder;
//! use tower::timeout::{TimeoutLayer, error::Elapsed};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let router = Router::new().method("wait", |(): (), _cx: Context| async {
//!     Ok(std::future::pending::<()>().await)
//! });
//! let layers = ServiceBuilder::new()
//!     .map_err(|error: BoxError| match error.downcast::<ErrorObject>() {
//!         Ok(error) => *error,                        // an error of the router
//!         Err(error) if error.is::<Elapsed>() => ErrorObject::timed_out(),
//!         Err(error) => ErrorObject::internal(error),
//!     })
//!     .layer(TimeoutLayer::new(Duration::from_millis(10)));
//! let client = Client::in_process(router.layer(layers));
//! let error = client.call::<()>("wait", ()).await.unwrap_err();
//! assert!(matches!(error, CallError::Rpc(error) if error.code == Code::TIMED_OUT));
//! # }
//! ```
//!
//! [`Client::layer`](crate::Client::layer) and [`ClientBuilder::layer`](crate::ClientBuilder::layer) add a
//! layer to a client. There the request type is [`OutgoingCall`], and the error becomes a
//! [`CallError`](crate::CallError). `Timeout`, `Concurrency`, `Filter`, `Metrics`, `Trace` and
//! `CatchPanic` work on both sides.
//!
//! [`from_fn`] and [`from_outgoing_fn`] make a layer from an async function. This is enough for most custom
//! layers. A layer with a `Service` of its own, which rejects every call:
//!
//! ```
//! use antiphon::layer::{HandlerService, IncomingCall};
//! use antiphon::{Context, ErrorObject, Handler, Outcome, RawJson, Responder, Router};
//! use std::task::{Context as Poller, Poll};
//! use tower::Service;
//!
//! #[derive(Clone)]
//! struct Closed<S>(S);
//!
//! impl<S: Service<IncomingCall, Error = ErrorObject>> Service<IncomingCall> for Closed<S> {
//!     type Response = S::Response;
//!     type Error = ErrorObject;
//!     type Future = std::future::Ready<Result<S::Response, ErrorObject>>;
//!
//!     fn poll_ready(&mut self, cx: &mut Poller<'_>) -> Poll<Result<(), ErrorObject>> {
//!         self.0.poll_ready(cx)
//!     }
//!
//!     fn call(&mut self, request: IncomingCall) -> Self::Future {
//!         std::future::ready(Err(ErrorObject::new(7, format!("no {} today", request.call.method))))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
//! let responder = Responder::new(router.layer(tower::layer::layer_fn(Closed)));
//! let answer = responder.answer(r#"{"jsonrpc":"2.0","method":"ping","id":1}"#).await;
//! assert!(answer.unwrap().ends_with(br#"{"code":7,"message":"no ping today"},"id":1}"#));
//! # }
//! ```
//!
//! The layer that is added last is the outermost. A good order, from the innermost: `CatchPanic`,
//! `Timeout`, `Concurrency`, `RateLimit`, `Auth`, a second `RateLimit`, `Filter`, `Metrics`, `Trace`. The
//! inner [`RateLimit`] charges authenticated callers by name. The outer one charges by address: without
//! it, guessing credentials is unlimited, because rejected calls never reach the inner one. Give the
//! outer one a quota that is large enough for all callers behind one address.

mod auth;
mod concurrency;
mod filter;
mod from_fn;
#[cfg(feature = "jwt")]
mod jwt;
mod metrics;
mod panic;
mod pattern;
mod policy;
mod prometheus;
mod rate;
mod timeout;
mod trace;

pub use auth::{Auth, Credentials};
pub use concurrency::Concurrency;
pub use filter::Filter;
pub use from_fn::{FromFn, FromFnService, Next, from_fn, from_outgoing_fn};
#[cfg(feature = "jwt")]
pub use jwt::{JwtSecret, JwtSecretError};
pub use metrics::Metrics;
pub use panic::CatchPanic;
pub use policy::PolicyService;
pub use rate::{Quota, RateLimit};
pub use timeout::Timeout;
pub use trace::Trace;

pub use crate::current_trace::{TracedFuture, carry};
pub use crate::error::BoxError;
pub use crate::identity::Identity;
pub use crate::service::{
    CallService, CallerService, HandlerFuture, HandlerService, IncomingCall, LayerCall, Layered,
    OutgoingCall, OutgoingService, ReadyCall,
};
