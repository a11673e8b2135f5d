//! Support code for the expansion of `#[rpc]` and `#[derive(RpcError)]`.
//!
//! Not a public API: it changes with the macros. Code that all contracts share is written once here, so
//! that a contract with many methods compiles fast.

mod arguments;
mod autoref;
mod bounds;
#[cfg(feature = "openrpc")]
mod describe;

pub use antiphon_core::{Code, ErrorObject};
pub use serde;

use antiphon_core::{Outcome, Params, RawJson};
use futures_core::Stream;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq};
use std::collections::BTreeMap;
use std::pin::Pin;

use crate::call::{CallError, Invocation};
use crate::client::Client;
use crate::context::Context;
use crate::error::IntoErrorObject;
use crate::subscription::Sink;

pub use arguments::{Arguments, MethodParams};
pub use autoref::{Probe, Readable, Unreadable};
pub use bounds::{
    ContextArgument, DefaultMessage, ErrorData, ServedContract, SinkArgument, TypedClient,
};
#[cfg(feature = "openrpc")]
pub use describe::{MethodDescriber, described};

/// The traits that a description probes on types.
#[cfg(feature = "openrpc")]
pub mod describe_traits {
    pub use super::autoref::{
        Describable, MaybeOptional, NeverOptional, Undescribable, Unwritable, WithKnownErrors,
        WithoutKnownErrors, Writable,
    };
}

/// Sends a notification. The params are encoded before the first await, so they need not be `Sync`.
pub fn notify(
    client: &Client,
    method: &str,
    params: &impl Serialize,
) -> impl Future<Output = Result<(), CallError>> + Send + 'static {
    let invocation =
        Params::encode(params).map(|params| Invocation::new(&client.prefix().name(method), params));
    let caller = client.caller().clone();
    async move { caller.post(invocation.map_err(CallError::Encode)?).await }
}

/// The outcome of a successful call.
pub fn answer<R: Serialize + 'static>(result: R) -> Outcome {
    crate::router::encode(result)
}

/// The stream of a subscription.
pub fn boxed_stream<T: Serialize + Send + 'static>(
    stream: impl Stream<Item = T> + Send + 'static,
) -> Pin<Box<dyn Stream<Item = T> + Send>> {
    Box::pin(stream)
}

/// The stream of a subscription whose items can fail.
pub fn boxed_try_stream<T: Serialize + Send + 'static, E: IntoErrorObject + 'static>(
    stream: impl Stream<Item = Result<T, E>> + Send + 'static,
) -> Pin<Box<dyn Stream<Item = Result<T, E>> + Send>> {
    Box::pin(stream)
}

/// The error with its only field as `data`.
pub fn with_data<T: ErrorData>(error: ErrorObject, data: &T) -> ErrorObject {
    error.with_data(data)
}

/// Serializes a named field of an error.
pub fn serialize_error_entry<M: SerializeMap, T: ErrorData>(
    map: &mut M,
    name: &'static str,
    value: &T,
) -> Result<(), M::Error> {
    map.serialize_entry(name, value)
}

/// Serializes an unnamed field of an error.
pub fn serialize_error_element<S: SerializeSeq, T: ErrorData>(
    list: &mut S,
    value: &T,
) -> Result<(), S::Error> {
    list.serialize_element(value)
}

/// The members of the `data` of an error.
pub fn data_members(error: &ErrorObject) -> Option<BTreeMap<String, RawJson>> {
    error.data.as_ref()?.decode().ok()
}

/// The context, if the argument of a method is one.
pub fn context<T: ContextArgument>(context: Context) -> T {
    T::from_context(context)
}

/// The sink, if the argument of a method is one.
pub fn sink<T: SinkArgument>(sink: Sink) -> T {
    T::from_sink(sink)
}

/// Keeps items that need the feature `memory`.
#[cfg(feature = "memory")]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_memory {
    ($($items:tt)*) => { $($items)* };
}

/// Drops items that need the feature `memory`.
#[cfg(not(feature = "memory"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_memory {
    ($($items:tt)*) => {};
}

/// Describes a method. For builds with the feature `openrpc`.
#[cfg(feature = "openrpc")]
#[doc(hidden)]
#[macro_export]
macro_rules! __describe {
    ($router:expr, $($description:tt)*) => {
        $crate::__private::described($router, $($description)*)
    };
}

/// Ignores the description. For builds without the feature `openrpc`.
#[cfg(not(feature = "openrpc"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __describe {
    ($router:expr, $($description:tt)*) => {
        $router
    };
}
