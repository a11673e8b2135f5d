//! The sans-IO core of `antiphon`: JSON-RPC messages, their bytes, and the calls in flight.
//!
//! It contains messages, exact ids, a one-pass decoder, an encoder, framings, limits, and the session
//! table of pending calls. It never opens a socket, reads a clock or needs a runtime: bytes become
//! messages, and messages become bytes. Most users need the `antiphon` crate, which adds the transports.
//!
//! ```
//! use antiphon_core::{Message, Payload, RawJson, Response, Rules, decode};
//! use bytes::{Bytes, BytesMut};
//!
//! let frame = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"ping","id":18446744073709551616}"#);
//! let Payload::One(Ok(Message::Request(ping))) = decode(&frame, &Rules::default()) else {
//!     unreachable!("a valid Request");
//! };
//! let mut out = BytesMut::new();
//! Response { id: ping.id, outcome: Ok(RawJson::parse("\"pong\"")?) }.encode(&mut out);
//! assert_eq!(out, r#"{"jsonrpc":"2.0","result":"pong","id":18446744073709551616}"#);
//! # Ok::<(), antiphon_core::SyntaxError>(())
//! ```

mod batch;
mod decode;
pub mod encode;
mod envelope;
mod error;
mod error_chain;
mod escape;
pub mod framing;
mod id;
mod json;
mod legacy;
mod limits;
mod members;
mod message;
mod method;
mod scan;
mod session;
mod trace_context;
mod version;

pub use batch::{Entries, LazyEntry, LazyRequest};
pub use decode::{Rules, decode};
pub use error::{Code, ErrorObject};
pub use error_chain::ErrorChain;
pub use id::{Id, NumberId, OtherId, StringId};
pub use json::RawJson;
pub use limits::Limits;
pub use message::{
    Entry, Intent, Invalid, Message, Notification, Outcome, Params, ParamsError, Payload, Request,
    Response,
};
pub use method::Method;
pub use scan::{JsonKind, SyntaxError};
pub use session::{Answered, Refused, Session, Ticket};
pub use trace_context::{Hex, TraceContext};
pub use version::{Version, Versions};
