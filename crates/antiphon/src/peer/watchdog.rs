//! Has the other side stopped moving?
//!
//! Looks at the connection a few times in each limit's span, and not at every message, so that time
//! costs nothing while bytes flow. It ends a connection whose message has been under way, in or
//! out, for a stall timeout without one byte of progress, and one that was idle for too long.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use antiphon_core::Limits;
use tokio::time::{Instant, Sleep, sleep};

/// Bytes that have moved on a connection; counted by the transport.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    read: AtomicU64,
    written: AtomicU64,
}

impl Meter {
    pub(crate) fn read(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn now(&self) -> (u64, u64) {
        (self.read.load(Ordering::Relaxed), self.written.load(Ordering::Relaxed))
    }
}

/// What the connection is doing while it waits.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    /// The sink does not take what is queued.
    pub(super) write_blocked: bool,
    /// The connection reads; a reader that pauses by its own choice cannot blame the other side.
    pub(super) reading: bool,
    /// Requests run or calls wait.
    pub(super) busy: bool,
}

pub(super) struct Watchdog {
    meter: Arc<Meter>,
    stall: Duration,
    idle: Option<Duration>,
    timer: Pin<Box<Sleep>>,
    period: Duration,
    /// The counts when bytes last moved, and when that was.
    moved: ((u64, u64), Instant),
    write_moved: (u64, Instant),
    read_at_frame: u64,
}

impl Watchdog {
    pub(super) fn new(meter: Arc<Meter>, limits: &Limits) -> Self {
        let shortest =
            limits.idle_timeout.map_or(limits.stall_timeout, |idle| idle.min(limits.stall_timeout));
        let period = (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(15));
        let now = Instant::now();
        Self {
            meter,
            stall: limits.stall_timeout,
            idle: limits.idle_timeout,
            timer: Box::pin(sleep(period)),
            period,
            moved: ((0, 0), now),
            write_moved: (0, now),
            read_at_frame: 0,
        }
    }

    /// A whole frame has come.
    pub(super) fn frame(&mut self) {
        self.read_at_frame = self.meter.now().0;
    }

    /// Ready with a reason when the connection should end.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, waiting: Waiting) -> Poll<String> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            self.timer.as_mut().reset(now + self.period);
            let counts = self.meter.now();
            if counts != self.moved.0 {
                self.moved = (counts, now);
            }
            if counts.1 != self.write_moved.0 || !waiting.write_blocked {
                self.write_moved = (counts.1, now);
            }
            if now - self.write_moved.1 >= self.stall {
                return Poll::Ready(format!(
                    "the other side has read nothing for {:?}",
                    self.stall
                ));
            }
            let still = now - self.moved.1;
            if waiting.reading && counts.0 > self.read_at_frame && still >= self.stall {
                return Poll::Ready(format!("a message stood unfinished for {:?}", self.stall));
            }
            if let Some(idle) = self.idle
                && still >= idle
                && !waiting.busy
            {
                return Poll::Ready(format!("nothing was said for {idle:?}"));
            }
        }
    }
}
