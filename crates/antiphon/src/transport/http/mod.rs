//! HTTP/1.1 and HTTP/2, both sides.
//!
//! A POST carries one message and its response carries the answer. [`HttpService`] serves, [`Guard`]
//! says who may ask at all; a [`Client`](crate::Client) of an `http://` endpoint calls.

mod activity;
mod answer;
mod body;
pub(crate) mod client;
mod date;
mod fast_path;
mod fast_path_head;
pub(super) mod fields;
mod guard;
pub(crate) mod listener;
mod pipeline;
pub(crate) mod remote;
mod respond;
pub(crate) mod server_service;
pub(crate) mod service;
#[cfg(feature = "ws")]
mod upgrade;

#[doc(hidden)]
pub use client::exchange_over;
pub use client::{HttpClientService, HttpRequestService};
pub use guard::Guard;
pub use server_service::{HttpBody, HttpServerService};
pub use service::HttpService;
