//! Stall detection: how long a progress counter has not changed.
//!
//! A connection checks its counters a few times per time limit ([`check_interval`]) and not at every
//! message, so that a time limit costs nothing while bytes move. A call over HTTP drives its own exchange,
//! and uses the timer of `stall_timer` instead.

use std::time::Duration;

use tokio::time::Instant;

/// The interval at which timeouts are checked, for the shortest of these timeouts.
pub(crate) fn check_interval(shortest: Duration) -> Duration {
    (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(15))
}

/// The value of a progress counter, and the time since when it has not changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallClock<T> {
    value: T,
    since: Instant,
}

impl<T: PartialEq> StallClock<T> {
    pub(crate) fn new(value: T, now: Instant) -> Self {
        Self { value, since: now }
    }

    /// Records the counter. Returns true if it has changed, which restarts the clock.
    pub(crate) fn record(&mut self, value: T, now: Instant) -> bool {
        let changed = self.value != value;
        if changed {
            *self = Self::new(value, now);
        }
        changed
    }

    /// The time for which the counter has not changed.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        now - self.since
    }
}

/// A [`StallClock`] that runs only while a condition holds.
#[derive(Debug)]
pub(crate) struct StallWhile<T>(Option<StallClock<T>>);

impl<T: PartialEq> StallWhile<T> {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// Records the condition and the counter. Returns for how long the condition has held without a
    /// change of the counter; `None` if it does not hold.
    pub(crate) fn record(&mut self, holds: bool, value: T, now: Instant) -> Option<Duration> {
        match &mut self.0 {
            _ if !holds => self.0 = None,
            Some(clock) => drop(clock.record(value, now)),
            None => self.0 = Some(StallClock::new(value, now)),
        }
        self.0.as_ref().map(|clock| clock.elapsed(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_change_restarts_the_clock() {
        let start = Instant::now();
        let mut clock = StallClock::new(0, start);
        assert!(!clock.record(0, start + SECOND));
        assert_eq!(clock.elapsed(start + SECOND), SECOND);
        assert!(clock.record(1, start + 2 * SECOND));
        assert_eq!(clock.elapsed(start + 3 * SECOND), SECOND);
    }

    #[test]
    fn a_condition_that_ends_restarts_the_clock() {
        let start = Instant::now();
        let mut clock = StallWhile::new();
        assert_eq!(clock.record(false, 0, start), None);
        assert_eq!(clock.record(true, 0, start), Some(Duration::ZERO));
        assert_eq!(clock.record(true, 0, start + SECOND), Some(SECOND));
        assert_eq!(clock.record(true, 1, start + 2 * SECOND), Some(Duration::ZERO));
        assert_eq!(clock.record(false, 1, start + 3 * SECOND), None);
        assert_eq!(clock.record(true, 1, start + 4 * SECOND), Some(Duration::ZERO));
    }

    #[test]
    fn timeouts_are_checked_four_times_within_bounds() {
        assert_eq!(check_interval(4 * SECOND), SECOND);
        assert_eq!(check_interval(Duration::ZERO), Duration::from_millis(5));
        assert_eq!(check_interval(Duration::from_secs(3600)), Duration::from_secs(15));
    }
}
