//! Serves a subscription: first inside the subscribe call, then in a task.
//!
//! The handler runs like every other handler until it accepts. Then the id is the reply, and the rest
//! of the handler becomes a task that forwards items. So no item can go out before the reply.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, Outcome, RawJson};

use crate::BoxFuture;
use crate::catch_unwind::CatchUnwind;
use crate::context::{AfterReply, Context};
use crate::subscription::{ServedSubscription, Sink, Topic};

/// The future of a handler. Its error is the reply, unless the reply has been sent.
type SubscriptionFuture = BoxFuture<'static, Result<(), ErrorObject>>;

/// Serves the subscribe call.
pub(crate) async fn open(
    topic: Arc<Topic>,
    cx: Context,
    work: impl FnOnce(Sink) -> SubscriptionFuture,
) -> Outcome {
    if cx.id().is_none() {
        // A notification gets no response, so the subscriber would never learn the id.
        return Err(ErrorObject::invalid_request());
    }
    let link = cx.peer()?.link().clone();
    let channel = link.serve_subscription(topic, cx.cancellation().clone())?;
    let registered = Registered(Some(channel.clone()));
    let mut work = work(Sink::new(channel.clone()));
    let ended = poll_fn(|poller| match work.as_mut().poll(poller) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if channel.poll_accepted(poller) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let work = match ended.await {
        None => Some(CatchUnwind::new(work)),
        Some(Ok(())) => None,
        Some(Err(error)) if !channel.is_accepted() => return Err(error),
        Some(Err(error)) => {
            channel.fail(error);
            None
        }
    };
    // A layer may run the call twice. What it opens second ends here, with its handler.
    cx.after_reply(channel.clone())?;
    tokio::spawn(Pump { channel: registered, work });
    RawJson::parse(channel.id.as_str().to_owned()).map_err(|_| ErrorObject::internal_error())
}

/// A subscription in the table of its connection. Dropping this removes it.
struct Registered(Option<Arc<ServedSubscription>>);

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(channel) = self.0.take() {
            channel.forget();
        }
    }
}

/// Items go out after the reply.
impl AfterReply for ServedSubscription {
    fn replied(&self) {
        self.release();
    }

    fn refused(&self) {
        self.end();
    }

    fn truncated(&self) {
        self.fail(ErrorObject::server_busy("the responses of its batch are too large"));
    }
}

/// The task of a subscription: runs the rest of the handler and forwards its items.
struct Pump {
    channel: Registered,
    work: Option<CatchUnwind<Result<(), ErrorObject>>>,
}

impl Future for Pump {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<()> {
        let Self { channel: Registered(Some(channel)), work } = &mut *self else {
            return Poll::Ready(());
        };
        if channel.is_closed() {
            *work = None;
        }
        if let Some(handler) = work
            && let Poll::Ready(ended) = handler.poll(poller)
        {
            *work = None;
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => channel.fail(error),
                Err(_panicked) => channel.fail(ErrorObject::internal_error()),
            }
        }
        channel.poll_pump(poller)
    }
}
