//! The deadline of the call that this thread polls.
//!
//! When the timeout of a call passes, its future is dropped, and nobody knows how far it has come. A caller
//! that has sent nothing yet reads the deadline here, and fails in time with an error that tells so. Once
//! anything is sent in the scope of the deadline, nobody sees it any more, so no error claims "not sent" for a
//! call that may have run, even if a layer sends it again. A layer that polls the call in another task hides
//! the deadline: then the call just times out.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::CallError;
use crate::error::{Cause, CloseReason};

thread_local! {
    static CURRENT: Cell<Option<Deadline>> = const { Cell::new(None) };
}

/// The end of the timeout of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    limit: Duration,
}

/// Restores the deadline of an outer call when it is dropped.
struct DeadlineGuard(Option<Deadline>);

impl Drop for DeadlineGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl Deadline {
    /// The deadline at this time, which comes from this limit.
    pub(super) fn new(at: Instant, limit: Duration) -> Self {
        Self { at, limit }
    }

    /// Runs a future in which [`wait_to_send`] and [`passed`] see this deadline, until [`sent`] is called.
    pub(super) async fn scope<F: Future>(self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut current = Some(self);
        poll_fn(|poller| {
            let _guard = DeadlineGuard(CURRENT.replace(current));
            let polled = future.as_mut().poll(poller);
            current = CURRENT.get();
            polled
        })
        .await
    }

    fn has_passed(self) -> bool {
        Instant::now() >= self.at
    }
}

/// Something is about to be sent: from here on the current call may have run.
pub(crate) fn sent() {
    CURRENT.set(None);
}

/// The timeout of the current call, if it has passed. The timer of the call wakes its task, so a future that
/// waits needs no timer of its own.
pub(crate) fn passed() -> Option<Duration> {
    CURRENT.get().filter(|deadline| deadline.has_passed()).map(|deadline| deadline.limit)
}

/// Waits for what a call needs before it is sent. Fails with the timeout when the deadline passes.
pub(crate) async fn wait_to_send<F: Future>(wait: F) -> Result<F::Output, Duration> {
    let mut wait = pin!(wait);
    let Some(deadline) = CURRENT.get() else { return Ok(wait.await) };
    let mut sleep = pin!(sleep_until(deadline.at));
    poll_fn(|poller| match wait.as_mut().poll(poller) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        // The timer of the call may have woken this task before ours has fired.
        Poll::Pending if deadline.has_passed() => Poll::Ready(Err(deadline.limit)),
        Poll::Pending => sleep.as_mut().poll(poller).map(|()| Err(deadline.limit)),
    })
    .await
}

/// The cause of a call that found no connection before its deadline.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {limit:?}")]
struct NoConnection {
    limit: Duration,
    /// The reason why there is none, if it is known.
    source: Option<CloseReason>,
}

/// The cause of a call that found no connection within this time.
pub(crate) fn no_connection(limit: Duration, source: Option<CloseReason>) -> Cause {
    io::Error::new(io::ErrorKind::TimedOut, NoConnection { limit, source }).into()
}

/// Waits for a call, at most for this time.
pub(crate) async fn within<T>(
    timeout: Option<Duration>,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let deadline = timeout
        .and_then(|limit| Instant::now().checked_add(limit).map(|at| Deadline::new(at, limit)));
    match deadline {
        None => call.await,
        Some(deadline) => tokio::time::timeout_at(deadline.at, deadline.scope(call))
            .await
            .unwrap_or(Err(CallError::TimedOut(deadline.limit))),
    }
}
