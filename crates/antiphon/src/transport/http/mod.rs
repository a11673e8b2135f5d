//! HTTP/1.1 and HTTP/2, both sides.
//!
//! A POST carries one message, and its response carries the reply. [`HttpService`] serves, [`Guard`]
//! checks Host and Origin, and an [`HttpPolicy`] decides statuses, headers and bodies. A
//! [`Client`](crate::Client) of an `http://` endpoint calls.

mod activity;
mod bitcoin_policy;
mod boxed_service;
pub(crate) mod client;
mod date;
#[cfg(feature = "jwt")]
mod engine_policy;
mod event_queue;
mod event_stream;
mod fast_path;
mod fast_path_exchange;
mod fast_path_head;
mod fast_path_response;
mod guard;
pub(super) mod header_values;
mod http_body;
mod http_message;
pub(crate) mod listener;
mod policy;
mod policy_exchange;
mod prefixed_stream;
mod refusal;
pub(crate) mod remote;
mod request_body;
mod request_future;
mod response;
mod rules;
mod server_sent_event;
mod server_service;
mod service;
mod service_state;
mod settings;
mod streamed_call;
#[cfg(feature = "ws")]
mod upgrade;

pub use bitcoin_policy::BitcoinPolicy;
pub(crate) use boxed_service::BoxedService;
pub use client::HttpClientService;
#[doc(hidden)]
pub use client::exchange_over;
#[cfg(feature = "jwt")]
pub use engine_policy::EnginePolicy;
pub use event_stream::{EventError, EventSender, EventStream};
pub use guard::Guard;
pub use http_body::HttpBody;
pub use http_message::{HttpMessage, MessageEntry, MessageVersion};
pub use policy::{EventStreamOptions, HeadDecision, HttpOutcome, HttpPolicy, MessageDecision};
pub use refusal::HttpRefusal;
pub use server_sent_event::ServerSentEvent;
pub use server_service::HttpServerService;
pub use service::HttpService;
pub(crate) use settings::{HttpSettings, TextPage};
