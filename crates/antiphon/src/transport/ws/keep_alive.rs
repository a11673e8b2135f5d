//! Is the other side still there?
//!
//! A connection whose other side is gone without a word looks like one that is silent. A WebSocket
//! asks: what is silent for a span is sent a ping, and what is silent for another span is gone. A
//! TCP connection has the system ask.

use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::io::{Meter, WakeGated};

/// Asks a WebSocket.
pub(super) struct KeepAlive {
    span: Duration,
    timer: WakeGated<Sleep>,
    /// What had been read when it was last looked at.
    read: u64,
    /// It was asked since something was last read.
    asked: bool,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeepAliveAction {
    /// It is to be asked.
    Ping,
    /// It has not answered.
    Fail,
}

impl KeepAlive {
    pub(super) fn new(span: Duration) -> Self {
        Self { span, timer: WakeGated::new(sleep(span)), read: 0, asked: false }
    }

    pub(super) fn span(&self) -> Duration {
        self.span
    }

    /// Ready when something is to be done about the silence. While a message of ours is under way, a ping
    /// would stand behind it: that the message moves is the connection's to see.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        meter: &Meter,
        is_writing: bool,
    ) -> Poll<KeepAliveAction> {
        while self.timer.poll(cx).is_ready() {
            let span = self.span;
            self.timer.change(|timer| timer.reset(Instant::now() + span));
            let read = meter.bytes_read();
            let is_silent = std::mem::replace(&mut self.read, read) == read && !is_writing;
            let was_asked = std::mem::replace(&mut self.asked, is_silent);
            match (is_silent, was_asked) {
                (false, _) => {}
                (true, false) => return Poll::Ready(KeepAliveAction::Ping),
                (true, true) => return Poll::Ready(KeepAliveAction::Fail),
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_is_silent_is_asked_and_then_gone() {
        let meter = Meter::default();
        let mut keep = KeepAlive::new(Duration::from_secs(10));
        for _ in 0..3 {
            assert_eq!(poll_fn(|cx| keep.poll(cx, &meter, false)).await, KeepAliveAction::Ping);
            meter.read(2);
        }
        assert_eq!(poll_fn(|cx| keep.poll(cx, &meter, false)).await, KeepAliveAction::Ping);
        assert_eq!(poll_fn(|cx| keep.poll(cx, &meter, false)).await, KeepAliveAction::Fail);
        let long = tokio::time::timeout(
            Duration::from_secs(600),
            poll_fn(|cx| keep.poll(cx, &meter, true)),
        );
        assert!(long.await.is_err(), "a message is under way");
    }
}
