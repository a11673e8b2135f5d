//! What stands around one call: `tower` layers, and the ready ones, a file each.
//!
//! A single call and each entry of a batch pass through the same layers, once each; a Notification
//! does too. [`Handler::layer`](crate::Handler::layer) puts one around what is served. Any layer of the
//! `tower` ecosystem fits, such as `tower::limit::ConcurrencyLimitLayer`: a call is an [`IncomingCall`], its
//! result a [`RawJson`](crate::RawJson), and an error whatever becomes a `Box<dyn Error>`. Of those, an
//! [`ErrorObject`](crate::ErrorObject) is answered as it is; any other goes to the log and is answered -32603.
//!
//! [`Client::layer`](crate::Client::layer) and [`ClientBuilder::layer`](crate::ClientBuilder::layer) put
//! them around what is called: a call is an [`OutgoingCall`] then, and an error a
//! [`CallError`](crate::CallError). `Timeout`, `Concurrency`, `Filter`, `Metrics`, `Trace` and
//! `CatchPanic` stand on either side.
//!
//! A layer of one's own, that lets nobody in on Sundays:
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
//!     fn call(&mut self, served: IncomingCall) -> Self::Future {
//!         std::future::ready(Err(ErrorObject::new(7, format!("no {} today", served.call.method))))
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
//! The order matters, and the outermost layer is added last. A good one, from the inside: panics,
//! timeout, concurrency, rate, authentication, rate once more, filter, metrics, trace. The inner
//! [`RateLimit`] charges who was let in, by name. The outer one knows only addresses: without it,
//! guesses at credentials are free, since they never come to the inner one. Give it room for all who
//! share an address.

mod auth;
mod caller_service;
mod concurrency;
mod credentials;
mod exposition;
mod filter;
mod handler_service;
mod metrics;
mod muster;
mod panic;
mod pass;
mod passage;
mod rate;
pub(crate) mod session;
mod timeout;
pub(crate) mod trace;

use std::task::{Context as Poller, Poll};

pub use auth::{Auth, Credentials, Identity};
pub(crate) use caller_service::LayeredCaller;
pub use caller_service::{CallerService, Places};
pub use concurrency::Concurrency;
pub use filter::Filter;
pub use handler_service::{HandlerService, Layered};
pub use metrics::Metrics;
pub use panic::CatchPanic;
pub use pass::{IncomingCall, OutgoingCall, Passing};
pub use passage::Passage;
pub use rate::{Quota, RateLimit};
pub use timeout::Timeout;
pub use trace::{Trace, carry};

/// The error of a foreign layer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// One of the ready layers around a service.
#[derive(Clone, Debug)]
pub struct Wrapped<P, S> {
    pub(crate) policy: P,
    pub(crate) inner: S,
}

/// A ready layer is always ready: what it checks comes before what the services further in wait for.
fn always_ready<E>(_: &mut Poller<'_>) -> Poll<Result<(), E>> {
    Poll::Ready(Ok(()))
}
