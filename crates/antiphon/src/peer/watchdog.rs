//! The stall timeout and the idle timeout of a connection.
//!
//! Checks the connection a few times per timeout, and not at every message, so that the timeouts cost
//! nothing while bytes move. A connection ends when a message, incoming or outgoing, is incomplete and no
//! byte has moved for the stall timeout, or when the connection was idle for the idle timeout.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use antiphon_core::Limits;
use tokio::time::{Instant, Sleep, sleep};

use crate::io::stall::{StallClock, StallWhile, check_interval};
use crate::io::{Meter, WakeGated};

/// The activity of a connection at the time of a check.
#[derive(Clone, Copy)]
pub(super) struct Activity {
    /// The sink does not accept the queued messages.
    pub(super) write_blocked: bool,
    /// The connection reads. While it has paused reading, an incomplete message is not the fault of
    /// the peer.
    pub(super) reading: bool,
    /// Requests are running or calls are pending.
    pub(super) busy: bool,
    /// The number of messages received, for transports that count no bytes.
    pub(super) received: u64,
    /// The number of messages that the sink has accepted.
    pub(super) sent: u64,
}

/// The result of a check.
pub(super) enum Liveness {
    /// Something has moved since the last check.
    Active,
    /// Nothing has moved since the last check.
    Idle,
    /// A timeout is over, and the connection must end for this reason.
    TimedOut(String),
}

pub(super) struct Watchdog {
    meter: Arc<Meter>,
    stall: Duration,
    idle: Option<Duration>,
    timer: WakeGated<Sleep>,
    interval: Duration,
    /// Counts what moves in both directions.
    moved: StallClock<u64>,
    /// Counts what is written, while the sink is blocked.
    blocked: StallWhile<u64>,
}

impl Watchdog {
    pub(super) fn new(meter: Arc<Meter>, limits: &Limits) -> Self {
        let idle = limits.idle_timeout.unwrap_or(limits.stall_timeout);
        let interval = check_interval(idle.min(limits.stall_timeout));
        Self {
            meter,
            stall: limits.stall_timeout,
            idle: limits.idle_timeout,
            timer: WakeGated::new(sleep(interval)),
            interval,
            moved: StallClock::new(0, Instant::now()),
            blocked: StallWhile::new(),
        }
    }

    /// Ready when the next check is due.
    pub(super) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.timer.poll(cx));
        self.timer.change(|timer| timer.reset(Instant::now() + self.interval));
        Poll::Ready(())
    }

    /// Checks the timeouts of a connection with this activity.
    pub(super) fn check(&mut self, activity: Activity) -> Liveness {
        let now = Instant::now();
        let count = self.meter.moved() + activity.received + activity.sent;
        let has_moved = self.moved.record(count, now);
        match self.timed_out(now, activity) {
            Some(reason) => Liveness::TimedOut(reason),
            None if has_moved => Liveness::Active,
            None => Liveness::Idle,
        }
    }

    fn timed_out(&mut self, now: Instant, activity: Activity) -> Option<String> {
        let stall = self.stall;
        let written = self.meter.bytes_written() + activity.sent;
        let blocked = self.blocked.record(activity.write_blocked, written, now);
        if blocked.is_some_and(|blocked| blocked >= stall) {
            return Some(format!("the peer has not read for {stall:?} (`Limits::stall_timeout`)"));
        }
        let still = self.moved.elapsed(now);
        if activity.reading && still >= stall && self.meter.is_mid_message() {
            return Some(format!(
                "an incoming message was incomplete for {stall:?} (`Limits::stall_timeout`)"
            ));
        }
        match self.idle {
            Some(idle) if still >= idle && !activity.busy => {
                Some(format!("no message within {idle:?} (`Limits::idle_timeout`)"))
            }
            _ => None,
        }
    }
}
