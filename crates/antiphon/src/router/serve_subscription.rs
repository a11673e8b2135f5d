//! How a subscription begins and goes on: first inside the call that asks for it, then in a task.
//!
//! The handler runs where every handler does until it accepts; then its reply is the id, and the rest
//! of it becomes a task that moves items on. So whatever it sends, it cannot send it before its reply.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, Outcome, RawJson};

use crate::BoxFuture;
use crate::catch_unwind::CatchUnwind;
use crate::context::{AfterReply, Context};
use crate::subscription::{Channel, Sink, Topic};

/// What a handler does: it ends well, or with an error, which is the reply's if there was none.
type Work = BoxFuture<'static, Result<(), ErrorObject>>;

/// Serves the call that asks for a subscription.
pub(crate) async fn open(
    topic: Arc<Topic>,
    cx: Context,
    work: impl FnOnce(Sink) -> Work,
) -> Outcome {
    if cx.id().is_none() {
        // Nobody would learn how it is called.
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
    cx.after_reply(channel.clone());
    tokio::spawn(Pump { channel: registered, work });
    RawJson::parse(channel.id.as_str().to_owned()).map_err(|_| ErrorObject::internal_error())
}

/// A subscription that is listed, until this is dropped.
struct Registered(Option<Arc<Channel>>);

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(channel) = self.0.take() {
            channel.forget();
        }
    }
}

/// The items of a subscription follow its reply.
impl AfterReply for Channel {
    fn replied(&self) {
        self.release();
    }

    fn refused(&self) {
        self.end();
    }

    fn truncated(&self) {
        self.fail(ErrorObject::server_busy("the answers of its batch are too large"));
    }
}

/// The rest of a handler, and the way of its items.
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
