//! HTTP/1.1 and HTTP/2, both sides.
//!
//! A POST carries one message and its response carries the answer. `service.rs` serves, `answer.rs`
//! decides what an answer looks like, `guard.rs` who may ask at all, `client.rs` calls.

mod answer;
pub(crate) mod client;
mod guard;
pub(crate) mod listener;
pub(crate) mod service;
#[cfg(feature = "ws")]
mod upgrade;

pub use guard::Guard;
pub use service::HttpService;
