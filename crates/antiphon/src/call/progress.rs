//! How far a call has come, as its caller sees it.

use std::fmt;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Poller, Poll, ready};
use std::time::Duration;

use antiphon_core::RawJson;
use futures_core::Stream;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

use super::CallError;
use crate::subscription::{Ended, Feed, FeedEvent, Overflow, Topic};

/// What was told of a call on its way, as a `Stream` that ends with the call. Made by
/// [`Call::with_progress`](crate::Call::with_progress).
pub struct Progress<P> {
    feed: Arc<Feed>,
    told: PhantomData<fn() -> P>,
}

/// What waits to be taken; older progress is of less use than newer.
const BUFFER: usize = 64;

impl<P> Progress<P> {
    /// The two ends.
    pub(crate) fn watch() -> (Watch, Self) {
        let topic = Topic::of("progress").buffer(BUFFER).overflow(Overflow::DropOldest);
        let feed = Arc::new(Feed::new(topic));
        (Watch::new(Some(feed.clone())), Self { feed, told: PhantomData })
    }
}

impl<P: DeserializeOwned> Stream for Progress<P> {
    type Item = Result<P, serde_json::Error>;

    fn poll_next(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(self.feed.poll_next(poller)) {
                FeedEvent::Item(value) => return Poll::Ready(Some(value.decode())),
                FeedEvent::Notice(_) => {}
                FeedEvent::Ended(_) => return Poll::Ready(None),
            }
        }
    }
}

impl<P> fmt::Debug for Progress<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

/// Who wants to know how far a call has come.
#[derive(Clone)]
pub struct Watch(pub(crate) Arc<Watched>);

pub(crate) struct Watched {
    /// Where it goes, if anywhere.
    pub(crate) feed: Option<Arc<Feed>>,
    last: Mutex<Instant>,
}

/// Nobody tells anything any more.
impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            feed.end(Ended::Over(String::new()));
        }
    }
}

impl Watch {
    pub(crate) fn new(feed: Option<Arc<Feed>>) -> Self {
        Self(Arc::new(Watched { feed, last: Mutex::new(Instant::now()) }))
    }

    /// When something was last heard.
    pub(crate) fn last(&self) -> Instant {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers progress, and restarts the time.
    pub(crate) fn deliver(&self, value: RawJson) {
        self.beat();
        if let Some(feed) = &self.0.feed {
            feed.offer(value);
        }
    }

    /// Restarts the time.
    fn beat(&self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// How long a call is waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    /// Without progress, where that counts.
    pub(crate) timeout: Option<Duration>,
    /// In all.
    pub(crate) cap: Option<Duration>,
}

/// Nobody is told anything any more.
struct Over<'a>(&'a Watch);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        if let Some(feed) = &self.0.0.feed {
            feed.end(Ended::Over(String::new()));
        }
    }
}

impl Patience {
    /// Waits for a call that is watched.
    pub(crate) async fn wait<T>(
        self,
        call: impl Future<Output = Result<T, CallError>>,
        watch: &Watch,
    ) -> Result<T, CallError> {
        let _over = Over(watch);
        let start = Instant::now();
        watch.beat();
        let mut call = pin!(call);
        loop {
            let Some((deadline, limit)) = self.deadline(start, watch) else { return call.await };
            tokio::select! {
                biased;
                outcome = &mut call => return outcome,
                () = sleep_until(deadline) => {}
            }
            // What was told meanwhile has moved it.
            if self.deadline(start, watch).is_none_or(|(again, _)| again <= deadline) {
                return Err(CallError::TimedOut(limit));
            }
        }
    }

    /// When it is over, and after what time that is.
    fn deadline(self, start: Instant, watch: &Watch) -> Option<(Instant, Duration)> {
        let since = if self.cap.is_some() { watch.last() } else { start };
        let timeout = self.timeout.and_then(|limit| Some((since.checked_add(limit)?, limit)));
        let cap = self.cap.and_then(|limit| Some((start.checked_add(limit)?, limit)));
        match (timeout, cap) {
            (Some(timeout), Some(cap)) => Some(if timeout.0 < cap.0 { timeout } else { cap }),
            (one, other) => one.or(other),
        }
    }
}
