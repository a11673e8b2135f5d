//! What a handler sends the items of a subscription to.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use antiphon_core::{ErrorObject, Id, RawJson};
use serde::Serialize;

use super::channel::Channel;
use super::items::Closing;
use crate::same_type::same_type;

/// Where the items of one subscription go. Cheap to clone; when the last clone is dropped, the source
/// has ended, and the other side is told.
///
/// The first item accepts the subscription, and so does [`accept`](Self::accept): the reply with the id
/// goes out before any item, whatever the handler does.
#[derive(Clone)]
pub struct Sink(Arc<Handle>);

struct Handle(Arc<Channel>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close(Closing::Over("the source has ended"));
    }
}

/// The subscription is over: its subscriber has ended it, or is gone, or was too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the subscription is over")]
pub struct SinkClosed;

impl From<SinkClosed> for ErrorObject {
    /// Nobody is left to read it.
    fn from(_: SinkClosed) -> Self {
        Self::internal_error()
    }
}

impl Sink {
    pub(crate) fn new(channel: Arc<Channel>) -> Self {
        Self(Arc::new(Handle(channel)))
    }

    /// The id of the subscription.
    pub fn id(&self) -> &Id {
        &self.0.0.id
    }

    /// Lets the reply with the id go out.
    pub fn accept(&self) {
        self.0.0.accept();
    }

    /// Sends an item. Where there is no room, it waits, or does what the topic's
    /// [`Overflow`](super::Overflow) says. An item that does not serialize ends the subscription.
    ///
    /// Many subscriptions of the same items: encode each item once to a [`RawJson`], and send that.
    pub async fn send<T: Serialize + 'static>(&self, item: T) -> Result<(), SinkClosed> {
        let mut item = Some(self.encode(item)?);
        // A source that always has more lets others by, the connection among them.
        tokio::task::coop::consume_budget().await;
        poll_fn(|poller| self.0.0.poll_push(&mut item, Some(poller))).await
    }

    /// The same where nothing can wait: false, and the item is not sent, where it would have to.
    pub fn try_send<T: Serialize + 'static>(&self, item: T) -> Result<bool, SinkClosed> {
        let mut item = Some(self.encode(item)?);
        let pushed = self.0.0.poll_push(&mut item, None)?;
        Ok(pushed.is_ready())
    }

    /// Ends the subscription with an error, after the items that wait.
    pub fn fail(&self, error: ErrorObject) {
        self.0.0.fail(error);
    }

    /// Whether no item is taken any more.
    pub fn is_closed(&self) -> bool {
        self.0.0.is_closed()
    }

    /// Waits until no item is taken any more.
    pub async fn closed(&self) {
        self.0.0.over().cancelled().await;
    }

    fn encode<T: Serialize + 'static>(&self, item: T) -> Result<RawJson, SinkClosed> {
        same_type::<T, RawJson>(item).or_else(|item| {
            RawJson::encode(&item).map_err(|error| {
                tracing::error!(%error, "an item does not serialize");
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
