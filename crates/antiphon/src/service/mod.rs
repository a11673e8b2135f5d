//! A handler or a caller as a `tower` service, and back.
//!
//! [`Handler::layer`] and [`Client::layer`](crate::Client::layer) are built on
//! this module: a [`HandlerService`] or a [`CallerService`] is the innermost service, and [`Layered`] or
//! [`LayeredCaller`] turns the service with its layers into a handler or a caller again. This module
//! contains no layer. The built-in layers are in [`layer`](crate::layer), which also exports these types.

mod caller_service;
mod handler;
mod handler_service;
mod incoming_call;
mod layer_call;
mod outgoing_batch;
mod outgoing_call;
mod ready_call;

pub(crate) use caller_service::LayeredCaller;
pub use caller_service::{CallerService, OutgoingService};
pub use handler::Handler;
pub use handler_service::{HandlerFuture, HandlerService, Layered};
pub use incoming_call::IncomingCall;
pub use layer_call::{CallService, LayerCall};
pub use outgoing_call::OutgoingCall;
pub use ready_call::ReadyCall;
