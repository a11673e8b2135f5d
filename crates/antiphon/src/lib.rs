#![doc = include_str!("../docs/crate.md")]
// What serves only some transports is idle without them; the full build checks that all is used.
#![cfg_attr(not(feature = "full"), allow(unused))]

#[cfg(feature = "macros")]
#[doc(hidden)]
#[path = "expansion/mod.rs"]
pub mod __private;
mod aside;
mod call;
mod client;
mod context;
mod dialect;
mod endpoint;
mod error;
mod handler;
pub mod layer;
#[cfg(feature = "openrpc")]
pub mod openrpc;
mod params;
mod peer;
mod progress;
mod raw;
mod reconnect;
mod responder;
mod router;
mod server;
mod subscription;
pub mod transport;

pub use antiphon_core as core;
pub use antiphon_core::framing::Framing;
pub use antiphon_core::{
    Code, ErrorObject, Id, Limits, Method, Outcome, Params, ParamsError, RawJson, Refused,
    TraceContext,
};
pub use call::{Batch, BatchEntry, Call, CallError, Caller, Invocation, Replies, Slot};
pub use client::{Client, ClientBuilder, ConnectError};
pub use context::{Connection, Context};
pub use dialect::{Cancellation, Dialect, ProgressStyle, Token};
pub use endpoint::{Authority, Endpoint, EndpointError};
pub use error::{FromErrorObject, IntoErrorObject, KnownError};
pub use handler::Handler;
pub use http;
pub use layer::{Identity, Served};
pub use peer::{Direction, Peer, Watch};
pub use progress::Progress;
pub use reconnect::{ConnectionState, Reconnect};
pub use responder::Responder;
pub use router::Router;
#[cfg(feature = "openrpc")]
pub use schemars;
pub use server::{BindError, Server};
pub use subscription::{
    Follower, Overflow, Sink, SinkClosed, Subscribe, Subscription, SubscriptionError, Topic,
};
pub use tokio_util::sync::CancellationToken;

#[cfg(feature = "macros")]
#[doc = include_str!("../docs/rpc.md")]
pub use antiphon_macros::rpc;

#[cfg(feature = "macros")]
#[doc = include_str!("../docs/rpc_error.md")]
pub use antiphon_macros::RpcError;

/// The future of something dynamic.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The examples of the documents are compiled with the tests.
#[cfg(all(doctest, feature = "full"))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;

    #[doc = include_str!("../../../docs/coming-from-jsonrpsee.md")]
    struct ComingFromJsonrpsee;
}
