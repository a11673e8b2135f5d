//! Keep-alive pings of a WebSocket.
//!
//! A connection whose peer has vanished looks like an idle one. After one interval without data a
//! WebSocket sends a ping; after another interval without data the connection fails. A TCP connection
//! relies on the keep-alive of the operating system.

use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::io::{Meter, WakeGated};

/// The keep-alive timer of a WebSocket.
pub(super) struct KeepAlive {
    span: Duration,
    timer: WakeGated<Sleep>,
    /// The number of bytes read at the last check.
    read: u64,
    /// A ping was sent since the last read.
    is_pinged: bool,
}

/// The action that the caller must take.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeepAliveAction {
    /// Send a ping.
    Ping,
    /// End the connection: the peer did not react to the ping.
    Fail,
}

impl KeepAlive {
    pub(super) fn new(span: Duration) -> Self {
        Self { span, timer: WakeGated::new(sleep(span)), read: 0, is_pinged: false }
    }

    pub(super) fn span(&self) -> Duration {
        self.span
    }

    /// Ready when the caller must act. Stays pending while a message is being written: a ping would queue
    /// after that message, and the stall detection of the connection already watches the write.
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
            let was_pinged = std::mem::replace(&mut self.is_pinged, is_silent);
            match (is_silent, was_pinged) {
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
    async fn a_silent_peer_gets_a_ping_and_then_the_connection_fails() {
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
        assert!(long.await.is_err(), "a message is being written");
    }
}
