//! One JSON-RPC engine for every dialect and every wire.
//!
//! Client, server and symmetric peer, over HTTP, WebSocket, TCP, TLS, Unix sockets, stdio, child
//! processes and in-process, with one [`Endpoint`] grammar for all of them.
//!
//! A service and a call to it:
//!
//! ```
//! use antiphon::{Client, Context, Router, Server};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Subtract { minuend: i64, subtrahend: i64 }       // by position and by name, both
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let router = Router::new()
//!     .method("subtract", |p: Subtract, _cx: Context| async move {
//!         Ok(p.minuend - p.subtrahend)
//!     })
//!     .notification("update", |values: Vec<i64>, _cx: Context| async move {
//!         println!("{values:?}");
//!     });
//! let server = Server::bind("tcp://127.0.0.1:0").await?;
//! let address = server.endpoints()[0].to_string();
//! tokio::spawn(server.serve(router));
//!
//! let client = Client::connect(&address).await?;
//! assert_eq!(client.call::<i64>("subtract", (42, 23)).await?, 19);
//! client.notify("update", [1, 2, 3]).await?;
//! # Ok(()) }
//! ```
//!
//! Or one trait is the whole contract, of the service and of its typed client: see [`macro@rpc`].
//!
//! Both sides can call: a handler finds the other side in [`Context::peer`], and a client serves
//! what it is given by [`ClientBuilder::handler`].
//!
//! # Features
//! `tcp`, `unix`, `stdio`, `child`, `memory` and `macros` are on by default. `http` and `ws` are not, since
//! they bring hyper, nor is `tls`, which brings rustls, nor `openrpc`, which brings schemars. `full` is
//! all of them. `self-signed` makes a certificate for development
//! ([`SelfSigned`](transport::tls::SelfSigned)); `validate` checks params against their schemas
//! ([`Router::check_params`]), and brings jsonschema.

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

/// The examples of the README are compiled with the tests.
#[cfg(all(doctest, feature = "full"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
