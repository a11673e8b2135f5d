//! The transports: one file or folder and one feature each.
//!
//! A [`Transport`] carries whole messages in both directions; the connection above it implements
//! JSON-RPC. HTTP is not a `Transport`, because a server cannot call its client over it. A custom
//! transport that only carries requests and their replies is a [`RequestReply`]. Nothing here decides
//! JSON-RPC semantics.

#[cfg(feature = "child")]
pub mod child;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "memory")]
pub mod memory;
mod request_reply;
#[cfg(feature = "stdio")]
pub(crate) mod stdio;
pub mod stream;
#[cfg(feature = "tcp")]
pub(crate) mod tcp;
#[cfg(all(feature = "unix", unix))]
pub(crate) mod unix;
#[cfg(feature = "ws")]
pub(crate) mod ws;

#[cfg(feature = "tls")]
pub use crate::io::tls;
pub use crate::peer::{Transport, TransportError};
pub(crate) use request_reply::RequestReplyCaller;
pub use request_reply::{RequestMessage, RequestReply};
