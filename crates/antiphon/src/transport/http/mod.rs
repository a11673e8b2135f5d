//! HTTP/1.1 and HTTP/2, both sides.
//!
//! A POST carries one message and its response carries the answer. [`HttpService`] serves, [`Guard`]
//! says who may ask at all; a [`Client`](crate::Client) of an `http://` endpoint calls.

mod activity;
mod answer;
pub(crate) mod answering;
pub(crate) mod asker;
mod body;
pub(crate) mod client;
mod date;
pub(super) mod fields;
mod guard;
pub(crate) mod listener;
mod pipeline;
mod respond;
pub(crate) mod service;
#[cfg(feature = "ws")]
mod upgrade;
mod usual;
mod usual_head;

pub use answering::{Answering, HttpBody};
pub use client::{Posting, Posts};
pub use guard::Guard;
pub use service::HttpService;
