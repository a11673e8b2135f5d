//! What serves calls.

use std::sync::Arc;

use antiphon_core::Outcome;

use crate::BoxFuture;
use crate::call::Invocation;
use crate::context::Context;

/// Serves calls and notifications. [`Router`](crate::Router) is one; implement it to see every
/// message before any routing.
///
/// A handler is entered in arrival order and runs in place until it first waits; only then does it
/// become a task of its own. So do not block: hand long computations to `spawn_blocking`.
pub trait Handler: Send + Sync + 'static {
    /// Serves a Request. Its one answer is the outcome; a panic answers -32603.
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome>;

    /// Serves a Notification. The next message waits until it is done.
    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()>;
}

impl<H: Handler + ?Sized> Handler for Arc<H> {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        (**self).call(call, cx)
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        (**self).notify(notification, cx)
    }
}
