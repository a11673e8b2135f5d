//! The time of the next message: as soon as a reply arrives, or when it is due.
//!
//! Connections share no state: each gets its part of the count or of the schedule at the start. All
//! times are nanoseconds from the start of the round.

/// The time after the end in which an overdue message is still sent: the load generator may have been
/// busy with another connection.
const GRACE: u64 = 100_000_000;

/// Decides when one connection sends.
#[derive(Debug)]
pub(super) struct Pacer {
    /// The maximum number of messages in flight.
    cap: usize,
    /// The end of the warm-up. Messages sent before do not count.
    start: u64,
    end: u64,
    /// Messages left to send; `None` with `--duration`.
    left: Option<u64>,
    schedule: Option<Schedule>,
}

/// A fixed schedule. The latency of a call counts from the time it was due. Otherwise a slow server
/// would delay the next calls and hide their waiting time (coordinated omission).
#[derive(Debug)]
pub(super) struct Schedule {
    /// The index of the next message, over all connections.
    pub(super) next: u64,
    /// The number of connections, which take turns.
    pub(super) turns: u64,
    /// The time between two messages over all connections, in nanoseconds.
    pub(super) period: f64,
}

impl Schedule {
    fn due(&self) -> u64 {
        (self.next as f64 * self.period) as u64
    }
}

impl Pacer {
    pub(super) fn new(
        cap: usize,
        (start, end): (u64, Option<u64>),
        left: Option<u64>,
        schedule: Option<Schedule>,
    ) -> Self {
        Self { cap, start, end: end.unwrap_or(u64::MAX), left, schedule }
    }

    /// Returns the start time for the latency of the next message, if it may be sent now.
    pub(super) fn take(&mut self, now: u64, in_flight: usize) -> Option<u64> {
        if in_flight >= self.cap || self.is_over(now) {
            return None;
        }
        let from = match &mut self.schedule {
            None => now,
            Some(schedule) => {
                let due = schedule.due();
                if due > now {
                    return None;
                }
                schedule.next += schedule.turns;
                due
            }
        };
        if let Some(left) = self.left.as_mut().filter(|_| from >= self.start) {
            *left -= 1;
        }
        Some(from)
    }

    /// Returns whether nothing more will be sent.
    pub(super) fn is_over(&self, now: u64) -> bool {
        let is_scheduled_out = self.schedule.as_ref().is_some_and(|next| next.due() >= self.end);
        now >= self.end() || is_scheduled_out || self.left == Some(0)
    }

    /// Returns the time after which nothing is sent.
    pub(super) fn end(&self) -> u64 {
        self.end.saturating_add(if self.schedule.is_some() { GRACE } else { 0 })
    }

    /// Returns the time when the next message is due, unless it waits for a reply instead.
    pub(super) fn due(&self, in_flight: usize) -> Option<u64> {
        self.schedule.as_ref().filter(|_| in_flight < self.cap).map(Schedule::due)
    }

    /// Returns whether a count, not a time, ends the round.
    pub(super) fn is_counted(&self) -> bool {
        self.left.is_some()
    }

    /// Returns the messages that were not sent: the rest of the count, or those that were due between
    /// the warm-up and the end.
    pub(super) fn missed(&self) -> u64 {
        if let Some(left) = self.left {
            return left;
        }
        let Some(schedule) = &self.schedule else { return 0 };
        let before = |time: u64| (time as f64 / schedule.period).ceil() as u64;
        let left = |until: u64| until.saturating_sub(schedule.next).div_ceil(schedule.turns);
        left(before(self.end)) - left(before(self.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_schedule_a_free_slot_is_enough_to_send() {
        let mut pacer = Pacer::new(2, (0, Some(100)), None, None);
        assert_eq!(
            [pacer.take(5, 0), pacer.take(5, 1), pacer.take(5, 2)],
            [Some(5), Some(5), None]
        );
        assert_eq!((pacer.take(100, 0), pacer.is_over(100), pacer.due(0)), (None, true, None));
        assert_eq!(pacer.missed(), 0);
    }

    #[test]
    fn a_count_begins_after_the_warm_up() {
        let mut pacer = Pacer::new(9, (10, None), Some(2), None);
        let sent = [1, 9, 10, 11, 12].map(|now| pacer.take(now, 0));
        assert_eq!(sent, [Some(1), Some(9), Some(10), Some(11), None]);
        assert_eq!((pacer.is_over(12), pacer.missed()), (true, 0));
    }

    #[test]
    fn with_a_schedule_latency_counts_from_the_due_time() {
        // Connection 1 of 2, a message every 10 ns: due at 10, 30, 50, 70, 90.
        let schedule = Schedule { next: 1, turns: 2, period: 10.0 };
        let mut pacer = Pacer::new(9, (0, Some(100)), None, Some(schedule));
        assert_eq!((pacer.take(9, 0), pacer.due(0)), (None, Some(10)));
        assert_eq!(
            [pacer.take(35, 0), pacer.take(35, 1), pacer.take(35, 2)],
            [Some(10), Some(30), None]
        );
        assert_eq!((pacer.take(60, 9), pacer.due(9)), (None, None));
        // Overdue messages may be sent for a short time after the end.
        assert_eq!((pacer.take(100, 0), pacer.missed()), (Some(50), 2));
        assert_eq!((pacer.take(100 + GRACE, 0), pacer.missed()), (None, 2));
        assert_eq!([pacer.take(101, 0), pacer.take(101, 0)], [Some(70), Some(90)]);
        assert_eq!((pacer.take(101, 0), pacer.is_over(101), pacer.missed()), (None, true, 0));
        let schedule = Schedule { next: 1, turns: 2, period: 10.0 };
        assert_eq!(Pacer::new(9, (30, Some(100)), None, Some(schedule)).missed(), 4);
    }
}
