//! The bounds of the generated code on the user's types, with the compile error of each.

use serde::Serialize;
use std::fmt::Display;
use std::sync::Arc;

use crate::client::Client;
use crate::context::Context;
use crate::router::Router;
use crate::subscription::Sink;

/// An argument with the type name `Context`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not `antiphon::Context`",
    label = "for a param of this type, add `#[param]`"
)]
pub trait ContextArgument {
    /// The argument.
    fn from_context(context: Context) -> Self;
}

impl ContextArgument for Context {
    fn from_context(context: Context) -> Self {
        context
    }
}

/// An argument with the type name `Sink`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not `antiphon::Sink`",
    label = "for a param of this type, add `#[param]`"
)]
pub trait SinkArgument {
    /// The argument.
    fn from_sink(sink: Sink) -> Self;
}

impl SinkArgument for Sink {
    fn from_sink(sink: Sink) -> Self {
        sink
    }
}

/// An error whose cases may have no `message`.
#[diagnostic::on_unimplemented(
    message = "this error of `{Self}` has no message",
    label = "add `#[rpc(message = \"..\")]`, or implement `Display` for `{Self}`"
)]
pub trait DefaultMessage {
    /// The message of the error.
    fn message(&self) -> String;
}

impl<T: Display> DefaultMessage for T {
    fn message(&self) -> String {
        self.to_string()
    }
}

/// A field of an error that is sent in `data`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent in the `data` of an error",
    label = "implement `Serialize`, or send no data with `#[rpc(no_data)]` on the case, or skip this named \
             field with `#[rpc(skip)]`"
)]
pub trait ErrorData: Serialize {}

impl<T: Serialize> ErrorData for T {}

/// The client of a contract, for a contract that extends it.
pub trait TypedClient {
    /// The typed client over a client.
    fn over(client: &Client) -> Self;
}

/// The client of a contract that the service `S` implements, for a contract that extends it.
pub trait ServedContract<S> {
    /// Adds the methods of the contract to the router, unless it is among `contracts`.
    fn serve(service: Arc<S>, router: Router, contracts: &mut Vec<&'static str>) -> Router;
}
