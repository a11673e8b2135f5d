//! A timer that fires when nothing makes progress.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// A timer that is ready when a progress counter has not changed for a time limit.
#[derive(Debug)]
pub(crate) struct StallTimer {
    value: u64,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl StallTimer {
    pub(crate) fn new(value: u64, limit: Duration) -> Self {
        Self { value, limit, timer: Box::pin(sleep(limit)) }
    }

    /// Records the counter, which restarts the timer if it has changed, and polls the timer.
    pub(crate) fn poll(&mut self, value: u64, cx: &mut Context<'_>) -> Poll<()> {
        if self.value != value {
            self.value = value;
            self.timer.set(sleep(self.limit));
        }
        self.timer.as_mut().poll(cx)
    }
}
