//! Notifications of changes as a stream.
//!
//! A modern server sends them as long as a `subscriptions/listen` request is open. If its stream is lost, the client opens it
//! again, with growing pauses, and gives up if it is lost too often without a notification. A legacy server sends them
//! to every client; only resources have subscriptions.

mod legacy;
mod modern;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use antiphon::{BoxFuture, CancellationToken};
use futures_core::Stream;
use futures_util::stream;
use tokio::sync::broadcast::{self, error::RecvError};

use super::McpClient;
use super::core::Core;
use super::error::McpError;
use super::inbox::{ServerNotification, locked};
use crate::types::SubscriptionFilter;

/// The notifications that a client has asked for. Dropping it ends the subscription.
///
/// The stream ends when the server ends the subscription or the connection closes. An error is the last item.
pub struct Subscription {
    acknowledged: SubscriptionFilter,
    events: BoxStream,
    _end: EndOnDrop,
}

type BoxStream = Pin<Box<dyn Stream<Item = Result<ServerNotification, McpError>> + Send>>;

impl Subscription {
    /// What the server has agreed to send. It may be less than the client has asked for.
    pub fn acknowledged(&self) -> &SubscriptionFilter {
        &self.acknowledged
    }
}

impl Stream for Subscription {
    type Item = Result<ServerNotification, McpError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(cx)
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("acknowledged", &self.acknowledged).finish()
    }
}

/// Ends a subscription.
struct EndOnDrop {
    stop: CancellationToken,
    /// The resources to unsubscribe from, on a legacy server.
    legacy: Option<(Arc<Core>, Vec<String>)>,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.stop.cancel();
        let Some((core, uris)) = self.legacy.take() else { return };
        if uris.is_empty() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { core.release(&uris).await });
        }
    }
}

impl McpClient {
    /// Subscribes to notifications of the server. The subscription is open when this returns.
    ///
    /// ```no_run
    /// # async fn example(client: antiphon_mcp::client::McpClient) -> Result<(), antiphon_mcp::client::McpError> {
    /// use antiphon_mcp::types::SubscriptionFilter;
    /// use futures_util::StreamExt as _;
    ///
    /// let filter = SubscriptionFilter::list_changes()
    ///     .with_resource_subscriptions(vec!["file:///config.json".to_owned()]);
    /// let mut changes = client.listen(filter).await?;
    /// while let Some(change) = changes.next().await {
    ///     println!("{:?}", change?);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails if the server refuses the subscription.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Subscription, McpError> {
        match self.core.is_modern() {
            true => modern::listen(&self.core, filter).await,
            false => legacy::listen(&self.core, filter).await,
        }
    }
}

/// The notifications of a receiver until it or the connection is closed, and then the error if there is one.
fn received(
    receiver: broadcast::Receiver<ServerNotification>,
    failure: Arc<Mutex<Option<McpError>>>,
    closed: BoxFuture<'static, ()>,
) -> impl Stream<Item = Result<ServerNotification, McpError>> + Send {
    stream::unfold(
        (receiver, failure, Some(closed)),
        |(mut receiver, failure, closed)| async move {
            let mut closed = closed?;
            let event = tokio::select! {
                biased;
                event = receiver.recv() => event,
                () = &mut closed => Err(RecvError::Closed),
            };
            let (item, closed) = match event {
                Ok(event) => (Ok(event), Some(closed)),
                Err(RecvError::Lagged(count)) => {
                    (Ok(ServerNotification::Lagged(count)), Some(closed))
                }
                Err(RecvError::Closed) => (Err(locked(&failure).take()?), None),
            };
            Some((item, (receiver, failure, closed)))
        },
    )
}
