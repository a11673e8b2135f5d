//! Has the other side stopped moving?
//!
//! Looks at the connection a few times in each limit's span, and not at every message, so that time
//! costs nothing while bytes flow. It ends a connection whose message has been under way, in or
//! out, for a stall timeout without one byte of progress, and one that was idle for too long.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use antiphon_core::Limits;
use tokio::time::{Instant, Sleep, sleep};

use crate::io::{Meter, WakeGated};

/// What the connection is doing while it waits.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    /// The sink does not take what is queued.
    pub(super) write_blocked: bool,
    /// The connection reads; a reader that pauses by its own choice cannot blame the other side.
    pub(super) reading: bool,
    /// Requests run or calls wait.
    pub(super) busy: bool,
    /// Messages that came in so far, for transports that count no bytes.
    pub(super) received: u64,
    /// Messages that the sink has taken so far.
    pub(super) sent: u64,
}

/// What the watchdog has seen.
pub(super) enum Look {
    /// Something has moved since the last look.
    Moving,
    /// Nothing has.
    Still,
    /// It is over, for this reason.
    End(String),
}

pub(super) struct Watchdog {
    meter: Arc<Meter>,
    stall: Duration,
    idle: Option<Duration>,
    timer: WakeGated<Sleep>,
    period: Duration,
    /// The count when something last moved, and when that was.
    moved: (u64, Instant),
    /// Since when the sink takes nothing.
    blocked: Option<(u64, Instant)>,
}

impl Watchdog {
    pub(super) fn new(meter: Arc<Meter>, limits: &Limits) -> Self {
        let idle = limits.idle_timeout.unwrap_or(limits.stall_timeout);
        let period = (idle.min(limits.stall_timeout) / 4)
            .clamp(Duration::from_millis(5), Duration::from_secs(15));
        Self {
            meter,
            stall: limits.stall_timeout,
            idle: limits.idle_timeout,
            timer: WakeGated::new(sleep(period)),
            period,
            moved: (0, Instant::now()),
            blocked: None,
        }
    }

    /// Ready when it is time to look.
    pub(super) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.timer.poll(cx));
        self.timer.change(|timer| timer.reset(Instant::now() + self.period));
        Poll::Ready(())
    }

    /// What is to be done about a connection that does this.
    pub(super) fn look(&mut self, waiting: Waiting) -> Look {
        let (now, before) = (Instant::now(), self.moved.0);
        match self.fault(now, waiting) {
            Some(reason) => Look::End(reason),
            None if self.moved.0 == before => Look::Still,
            None => Look::Moving,
        }
    }

    fn fault(&mut self, now: Instant, waiting: Waiting) -> Option<String> {
        let count = self.meter.moved() + waiting.received + waiting.sent;
        if count != self.moved.0 {
            self.moved = (count, now);
        }
        let written = self.meter.bytes_written() + waiting.sent;
        self.blocked = match self.blocked {
            _ if !waiting.write_blocked => None,
            Some((before, since)) if before == written => Some((before, since)),
            _ => Some((written, now)),
        };
        let stall = self.stall;
        if self.blocked.is_some_and(|(_, since)| now - since >= stall) {
            return Some(format!("the other side has read nothing for {stall:?}"));
        }
        let still = now - self.moved.1;
        if waiting.reading && still >= stall && self.meter.is_mid_message() {
            return Some(format!("a message stood unfinished for {stall:?}"));
        }
        match self.idle {
            Some(idle) if still >= idle && !waiting.busy => {
                Some(format!("nothing was said for {idle:?}"))
            }
            _ => None,
        }
    }
}
