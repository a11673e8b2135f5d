//! The implementation of [`Link`], through which the handles of a connection use it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use antiphon_core::{ErrorObject, Id, RawJson, encode};
use bytes::{Bytes, BytesMut};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::shared::{Shared, Waiter};
use super::writer::Outgoing;
use crate::BoxFuture;
use crate::call::{BatchEntry, CallError, Intercepted, Invocation, Link, Stop, Watch, deadline};
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::error::{CloseReason, ErrorChain, SpawnError};
use crate::subscription::{FollowedSubscription, ServedSubscription, Topic};

/// The reason of a missing response, if there is no other.
pub(super) const DROPPED: &str = "the connection was dropped";

impl Shared {
    /// Waits until the write queue has capacity, so that senders cannot fill it without bound. Fails at the
    /// deadline of the call.
    pub(super) async fn capacity(&self) -> Result<(), CallError> {
        poll_fn(|cx| {
            let mut state = self.state();
            if let Some(reason) = &state.ended {
                return Poll::Ready(Err(CallError::Closed(reason.clone())));
            }
            if state.outbox.has_room() {
                deadline::sent();
                return Poll::Ready(Ok(()));
            }
            if let Some(limit) = deadline::passed() {
                return Poll::Ready(Err(CallError::SendTimedOut(limit)));
            }
            // A waiting sender keeps the reader active (`NeedsReader::ForCapacity`), so the connection
            // must be polled. Only a new sender wakes it: the connection also polls the handlers of
            // notifications, so a handler that waits here would wake it forever.
            if state.outbox.add_sender(cx.waker()) {
                self.wake_connection(state);
            }
            Poll::Pending
        })
        .await
    }
}

impl Link for Shared {
    fn connection(&self) -> &Connection {
        &self.facts
    }

    fn dialect(&self) -> Option<&Dialect> {
        self.settings.dialect.as_ref()
    }

    fn ended(&self) -> &watch::Sender<Option<CloseReason>> {
        &self.ended
    }

    fn stop(&self, how: Stop) {
        Shared::stop(self, how);
    }

    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(async move {
            self.capacity().await?;
            let (waiter, answer) = oneshot::channel();
            let pending = self.open(&call, Waiter::Call(waiter))?;
            let answer = answer.await;
            pending.answered();
            answer.unwrap_or_else(|_| Err(CallError::Interrupted(DROPPED.into())))
        })
    }

    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(Shared::send_watched(self, call, watch))
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            self.capacity().await?;
            Shared::post(self, &notification)
        })
    }

    fn watch_progress(&self, watch: Watch) -> Result<Id, CallError> {
        self.watch_token(watch)
    }

    fn unwatch_progress(&self, token: &Id) {
        self.watched_calls.unwatch(token);
    }

    fn post_now(&self, notification: &Invocation) -> Result<(), CallError> {
        // It does not wait for capacity, so it counts as a reply: the reader pauses for a peer that does not read.
        self.without_headers(notification)?;
        let mut message = BytesMut::with_capacity(notification.about_len());
        self.encode_notification(notification, &mut message);
        self.enqueue(Outgoing::Reply(message.freeze()))
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        Box::pin(async move {
            self.capacity().await?;
            let (_pending, answers) = self.open_batch(&entries)?;
            let mut results = Vec::with_capacity(answers.len());
            for answer in answers {
                results.push(
                    answer.await.unwrap_or_else(|_| Err(CallError::Interrupted(DROPPED.into()))),
                );
            }
            Ok(results)
        })
    }

    fn send_and_forget(&self, call: &Invocation) {
        let (waiter, _) = oneshot::channel();
        match self.open(call, Waiter::Call(waiter)) {
            Ok(pending) => pending.forget(),
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::debug!(%error, method = %call.method, "the call was not sent");
            }
        }
    }

    fn send_encoded(&self, message: Bytes) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            self.capacity().await?;
            self.enqueue(Outgoing::Call(message))
        })
    }

    fn response_bytes(&self) -> usize {
        self.settings.limits.response_bytes
    }

    fn send_after_reply(&self, messages: Vec<Bytes>) {
        let mut state = self.state();
        if state.ended.is_none() {
            messages.into_iter().for_each(|message| state.outbox.push(Outgoing::Reply(message)));
        }
        self.wake_connection(state);
    }

    fn spawn(self: Arc<Self>, task: BoxFuture<'static, ()>) -> Result<(), SpawnError> {
        self.spawn_task(task)
    }

    fn send_error(&self, error: &ErrorObject) {
        let mut message = BytesMut::new();
        let id = self.settings.rules.versions.unreadable_id();
        encode::response(&id, &Err(error.clone()), &mut message);
        let _ = self.enqueue(Outgoing::Reply(message.freeze()));
    }

    fn follow(
        self: Arc<Self>,
        call: Invocation,
        feed: Arc<FollowedSubscription>,
        gap: Option<CloseReason>,
    ) -> BoxFuture<'static, Result<(), CallError>> {
        Box::pin(Shared::follow(self, call, feed, gap))
    }

    fn serve_subscription(
        self: Arc<Self>,
        topic: Arc<Topic>,
        over: CancellationToken,
    ) -> Result<Arc<ServedSubscription>, ErrorObject> {
        Shared::serve_subscription(self, topic, over)
    }

    fn end_subscription(&self, id: &Id) -> bool {
        Shared::end_subscription(self, id)
    }

    fn cancel_running(&self, id: &Id) {
        Shared::cancel_running(self, id);
    }

    fn intercept(&self, notification: &Invocation) -> Intercepted {
        let params = notification.params.as_ref();
        if self.deliver_progress(notification.method.as_bytes(), params) {
            return Intercepted::Progress;
        }
        match self.followed(params) {
            Some((feed, delivered)) => Intercepted::Item(feed, delivered),
            None => Intercepted::No,
        }
    }
}
