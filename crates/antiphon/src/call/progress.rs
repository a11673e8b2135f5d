//! The progress of an outgoing call.

use std::fmt;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Poller, Poll, ready};
use std::time::Duration;

use antiphon_core::{Id, RawJson};
use futures_core::Stream;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

use super::CallError;
use super::deadline::Deadline;
use super::peer::Link;
use crate::catch_unwind::guarded;
use crate::subscription::{Ended, FollowedEvent, FollowedSubscription, Overflow, Topic};

/// A `Stream` of the progress of a call, which ends with the call. Created by
/// [`Call::with_progress`](crate::Call::with_progress).
///
/// ```
/// use antiphon::{CallError, Client};
/// use futures_util::StreamExt as _;
///
/// # async fn example(client: Client) -> Result<(), CallError> {
/// let (call, mut progress) = client.call::<String>("index", ()).with_progress::<String>();
/// let reports = async {
///     while let Some(Ok(report)) = progress.next().await {
///         println!("{report}");
///     }
/// };
/// let (result, ()) = tokio::join!(call, reports);
/// println!("{}", result?);
/// # Ok(()) }
/// ```
pub struct Progress<P> {
    feed: Arc<FollowedSubscription>,
    value: PhantomData<fn() -> P>,
}

/// The number of values that may wait. Older values are dropped first.
const BUFFER: usize = 64;

impl<P> Progress<P> {
    /// Creates a connected pair.
    pub(crate) fn watch() -> (Watch, Self) {
        let topic = Topic::new("progress").buffer(BUFFER).overflow(Overflow::DropOldest);
        let feed = Arc::new(FollowedSubscription::new(topic));
        (Watch::new(Some(feed.clone())), Self { feed, value: PhantomData })
    }
}

impl<P: DeserializeOwned> Stream for Progress<P> {
    type Item = Result<P, serde_json::Error>;

    fn poll_next(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(self.feed.poll_next(poller)) {
                FollowedEvent::Item(value) => return Poll::Ready(Some(value.decode())),
                FollowedEvent::Notice(_) => {}
                FollowedEvent::Ended(_) => return Poll::Ready(None),
            }
        }
    }
}

impl<P> fmt::Debug for Progress<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

/// A registration of [`Peer::watch_progress`](crate::Peer::watch_progress). Dropping it ends the registration: later
/// progress with the token is an ordinary notification.
#[must_use = "the watch ends when it is dropped"]
pub struct ProgressWatch {
    pub(super) link: Arc<dyn Link>,
    pub(super) token: Id,
}

impl ProgressWatch {
    /// Returns the token to send to the peer. It is unique among the tokens of this side on this connection.
    pub fn token(&self) -> &Id {
        &self.token
    }
}

impl Drop for ProgressWatch {
    fn drop(&mut self) {
        self.link.unwatch_progress(&self.token);
    }
}

impl fmt::Debug for ProgressWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressWatch").field(&self.token).finish()
    }
}

/// The receiver of the progress of a call.
#[derive(Clone)]
pub struct Watch(pub(crate) Arc<WatchState>);

pub(crate) struct WatchState {
    /// The stream of the values, if one was requested.
    pub(crate) feed: Option<Arc<FollowedSubscription>>,
    /// The function that receives the values.
    receive: Option<Box<dyn Fn(RawJson) + Send + Sync>>,
    last: Mutex<Instant>,
}

/// Ends the stream with the last handle.
impl Drop for WatchState {
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            feed.end(Ended::Over(String::new()));
        }
    }
}

impl Watch {
    pub(crate) fn new(feed: Option<Arc<FollowedSubscription>>) -> Self {
        Self(Arc::new(WatchState { feed, receive: None, last: Mutex::new(Instant::now()) }))
    }

    /// Passes the values to a function.
    pub(super) fn passing(receive: impl Fn(RawJson) + Send + Sync + 'static) -> Self {
        let receive: Option<Box<dyn Fn(RawJson) + Send + Sync>> = Some(Box::new(receive));
        Self(Arc::new(WatchState { feed: None, receive, last: Mutex::new(Instant::now()) }))
    }

    /// The time of the last progress.
    pub(crate) fn last(&self) -> Instant {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers a value, and restarts the timeout.
    pub(crate) fn deliver(&self, value: RawJson) {
        self.restart();
        if let Some(feed) = &self.0.feed {
            feed.offer(value);
        } else if let Some(receive) = &self.0.receive {
            // A panic must not end the connection. `guarded` logs it.
            let _ = guarded("the receiver of progress", || receive(value));
        }
    }

    /// Restarts the timeout.
    fn restart(&self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// The time limits of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallTimeouts {
    /// The maximum time since the start; since the last progress if `total` is set.
    pub(crate) timeout: Option<Duration>,
    /// The maximum time since the start, for a timeout that progress extends.
    pub(crate) total: Option<Duration>,
}

/// Ends the stream of a call when it is dropped.
struct EndOnDrop<'a>(&'a Watch);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(feed) = &self.0.0.feed {
            feed.end(Ended::Over(String::new()));
        }
    }
}

impl CallTimeouts {
    /// Waits for a call whose progress is watched.
    pub(crate) async fn wait<T>(
        self,
        call: impl Future<Output = Result<T, CallError>>,
        watch: &Watch,
    ) -> Result<T, CallError> {
        let _end = EndOnDrop(watch);
        let start = Instant::now();
        watch.restart();
        let mut call = pin!(call);
        loop {
            let Some((deadline, limit)) = self.deadline(start, watch) else { return call.await };
            tokio::select! {
                biased;
                outcome = Deadline::new(deadline, limit).scope(call.as_mut()) => return outcome,
                () = sleep_until(deadline) => {}
            }
            // Progress may have extended the deadline meanwhile.
            if self.deadline(start, watch).is_none_or(|(again, _)| again <= deadline) {
                return Err(CallError::TimedOut(limit));
            }
        }
    }

    /// The next deadline, and the limit that it comes from.
    fn deadline(self, start: Instant, watch: &Watch) -> Option<(Instant, Duration)> {
        let since = if self.total.is_some() { watch.last() } else { start };
        let timeout = self.timeout.and_then(|limit| Some((since.checked_add(limit)?, limit)));
        let total = self.total.and_then(|limit| Some((start.checked_add(limit)?, limit)));
        match (timeout, total) {
            (Some(timeout), Some(total)) => Some(if timeout.0 < total.0 { timeout } else { total }),
            (one, other) => one.or(other),
        }
    }
}
