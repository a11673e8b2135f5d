//! The sink to which a handler sends the items of a subscription.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use antiphon_core::{ErrorObject, Id, RawJson};
use serde::Serialize;

use super::item_message::Closing;
use super::served_subscription::ServedSubscription;
use crate::same_type::{is_result, same_type};

/// Sends the items of one subscription. Cheap to clone. When the last clone is dropped, the
/// subscription ends and the subscriber is notified.
///
/// The first item, or [`accept`](Self::accept), accepts the subscription. The reply with the id is
/// always sent before any item.
///
/// ```
/// use antiphon::{Context, ErrorObject, Router, Sink};
///
/// async fn countdown((from,): (u64,), sink: Sink, _cx: Context) -> Result<(), ErrorObject> {
///     for n in (0..from).rev() {
///         sink.send(n).await?;
///     }
///     Ok(())
/// }
///
/// let router = Router::new().subscription_with("countdown", countdown);
/// # drop(router);
/// ```
#[derive(Clone)]
pub struct Sink(Arc<Handle>);

struct Handle(Arc<ServedSubscription>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close(Closing::Over("the source has ended"));
    }
}

/// The subscription has ended: the subscriber has unsubscribed, has disconnected or was too slow, the server
/// shuts down, or an item could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the subscription has ended")]
pub struct SinkClosed;

impl From<SinkClosed> for ErrorObject {
    /// For `?` in a handler. The error is not sent, because the subscription has ended already. With
    /// [`Overflow::Close`](super::Overflow::Close) and after an item that cannot be serialized, the subscriber
    /// has got an error of its own.
    fn from(_: SinkClosed) -> Self {
        Self::internal_error()
    }
}

impl Sink {
    pub(crate) fn new(channel: Arc<ServedSubscription>) -> Self {
        Self(Arc::new(Handle(channel)))
    }

    /// The id of the subscription.
    pub fn id(&self) -> &Id {
        &self.0.0.id
    }

    /// Accepts the subscription: the reply with the id is sent.
    pub fn accept(&self) {
        self.0.0.accept();
    }

    /// Sends an item. If the buffer is full, applies the [`Overflow`](super::Overflow) of the topic,
    /// which may wait.
    ///
    /// An item that is a `Result` or cannot be serialized ends the subscription. Send the `Ok` value; return
    /// the `Err`, or pass it to [`fail`](Self::fail).
    ///
    /// To send one item to many subscriptions, encode it once as [`RawJson`] and send that.
    ///
    /// # Errors
    /// Fails if the subscription has ended, or ends because of this item. The item is dropped.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the item was not sent.
    pub async fn send<T: Serialize + 'static>(&self, item: T) -> Result<(), SinkClosed> {
        let mut item = Some(self.encode(item)?);
        // A source that is always ready must yield to other tasks, the connection among them.
        tokio::task::coop::consume_budget().await;
        poll_fn(|poller| self.0.0.poll_push(&mut item, Some(poller))).await
    }

    /// Like [`send`](Self::send), without waiting. Returns `false`, and does not send the item, if it
    /// would have to wait.
    ///
    /// # Errors
    /// Like [`send`](Self::send).
    pub fn try_send<T: Serialize + 'static>(&self, item: T) -> Result<bool, SinkClosed> {
        let mut item = Some(self.encode(item)?);
        let pushed = self.0.0.poll_push(&mut item, None)?;
        Ok(pushed.is_ready())
    }

    /// Ends the subscription with an error, after the buffered items.
    pub fn fail(&self, error: ErrorObject) {
        self.0.0.fail(error);
    }

    /// Whether the subscription has ended and accepts no more items.
    pub fn is_closed(&self) -> bool {
        self.0.0.is_closed()
    }

    /// Waits until the subscription has ended. Cancel safe.
    pub async fn closed(&self) {
        self.0.0.over().cancelled().await;
    }

    fn encode<T: Serialize + 'static>(&self, item: T) -> Result<RawJson, SinkClosed> {
        same_type::<T, RawJson>(item).or_else(|item| {
            if is_result::<T>() {
                let topic = self.0.0.topic();
                tracing::error!(topic, "an item of a subscription is a `Result`: send its value");
                self.fail(ErrorObject::internal_error());
                return Err(SinkClosed);
            }
            RawJson::encode(&item).map_err(|error| {
                let topic = self.0.0.topic();
                tracing::error!(topic, %error, "cannot serialize an item of a subscription");
                self.fail(ErrorObject::internal_error());
                SinkClosed
            })
        })
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sink").field(self.id()).finish()
    }
}
