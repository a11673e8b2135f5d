//! What the code that `#[rpc]` and `#[derive(RpcError)]` write stands on.
//!
//! Not for anybody else: it changes with the macros. Whatever can be written once, for all contracts,
//! is written here, so that a contract of many methods stays cheap to compile.

mod arguments;
mod autoref;
#[cfg(feature = "openrpc")]
mod describe;

pub use antiphon_core::{Code, ErrorObject};
pub use serde;

use antiphon_core::{Outcome, Params, RawJson};
use futures_core::Stream;
use serde::Serialize;
use std::collections::BTreeMap;
use std::pin::Pin;

use crate::call::{CallError, Invocation};
use crate::client::Client;

pub use arguments::{Arguments, Given};
pub use autoref::{Probe, Readable, Unreadable};
#[cfg(feature = "openrpc")]
pub use describe::{Describing, described};

/// What a description asks of types, to be found by a probe.
#[cfg(feature = "openrpc")]
pub mod ask {
    pub use super::autoref::{
        Certain, Describable, Fallible, Omissible, Showable, Undescribable, Unfallible, Unshowable,
    };
}

/// Sends a notification. The params are written before it is awaited, so that they need not be
/// `Sync`.
pub fn notify(
    client: &Client,
    method: &str,
    params: &impl Serialize,
) -> impl Future<Output = Result<(), CallError>> + Send + 'static {
    let invocation = Params::encode(params).map(|params| Invocation::new(method, params));
    let caller = client.caller().clone();
    async move { caller.post(invocation.map_err(CallError::Encode)?).await }
}

/// The answer to a call that went well.
pub fn answer<R: Serialize + 'static>(result: R) -> Outcome {
    crate::router::encode(result)
}

/// The stream of a subscription.
pub fn boxed<T: Serialize + Send + 'static>(
    stream: impl Stream<Item = T> + Send + 'static,
) -> Pin<Box<dyn Stream<Item = T> + Send>> {
    Box::pin(stream)
}

/// Asks for nothing but that the value can be sent.
pub fn serializable<T: Serialize>(value: &T) -> &T {
    value
}

/// The members of an error's `data`.
pub fn members(error: &ErrorObject) -> Option<BTreeMap<String, RawJson>> {
    error.data.as_ref()?.decode().ok()
}

/// Describes a method, where the library can.
#[cfg(feature = "openrpc")]
#[doc(hidden)]
#[macro_export]
macro_rules! __describe {
    ($router:expr, $($description:tt)*) => {
        $crate::__private::described($router, $($description)*)
    };
}

/// Describes no method: the library has not been asked to.
#[cfg(not(feature = "openrpc"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __describe {
    ($router:expr, $($description:tt)*) => {
        $router
    };
}
