#![doc = include_str!("../docs/crate.md")]
// Shows the feature that an item needs. Unstable, so only documentation builds turn it on.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "macros")]
#[doc(hidden)]
#[path = "macro_support/mod.rs"]
pub mod __private;
mod call;
mod catch_unwind;
mod client;
mod connection;
mod context;
mod current_trace;
mod dialect;
mod endpoint;
mod engine;
mod error;
mod identity;
mod invocation;
mod io;
pub mod layer;
mod log_excerpt;
#[cfg(feature = "openrpc")]
pub mod openrpc;
mod params;
mod peer;
mod per_connection;
mod router;
mod same_type;
mod server;
mod service;
mod subscription;
mod tap;
pub mod transport;

pub use antiphon_core as core;
pub use antiphon_core::framing::Framing;
pub use antiphon_core::{
    Code, ErrorObject, Id, Limits, Method, Outcome, Params, ParamsError, RawJson, Refused,
    TraceContext, Version,
};
pub use call::{
    Batch, BatchEntry, Call, Caller, Peer, Progress, ProgressWatch, Replies, Slot, Subscribe,
    Subscription, SubscriptionError, Watch,
};
pub use client::{Client, ClientBuilder, ConnectError, ConnectionState, Reconnect};
pub use connection::Connection;
pub use context::Context;
pub use dialect::{Cancellation, Dialect, ProgressStyle, Token};
pub use endpoint::{Authority, Endpoint, EndpointError};
pub use engine::Responder;
pub use error::{
    CallError, Cause, CloseReason, ErrorChain, FromErrorObject, HttpStatusError, IntoErrorObject,
    KnownError, SpawnError,
};
pub use http;
pub use identity::Identity;
pub use invocation::Invocation;
pub use per_connection::PerConnection;
pub use router::{Router, StatefulRouter};
#[cfg(feature = "openrpc")]
pub use schemars;
pub use server::{Accept, BindError, Server};
pub use service::{Handler, IncomingCall};
pub use subscription::{Follower, Overflow, Sink, SinkClosed, Topic};
pub use tap::{Direction, Tap, TappedMessage};
pub use tokio_util::sync::CancellationToken;

#[cfg(feature = "macros")]
#[doc = include_str!("../docs/rpc.md")]
pub use antiphon_macros::rpc;

#[cfg(feature = "macros")]
#[doc = include_str!("../docs/rpc_error.md")]
pub use antiphon_macros::RpcError;

/// A boxed future.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Compiles and runs the examples of the documents as doctests.
#[cfg(all(doctest, feature = "full"))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;

    #[doc = include_str!("../../../docs/dialects.md")]
    struct Dialects;

    #[doc = include_str!("../../../docs/coming-from-jsonrpsee.md")]
    struct ComingFromJsonrpsee;
}
