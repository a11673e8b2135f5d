//! When may the next message go? As soon as one is answered, or when it is due.
//!
//! Nothing here is shared: each connection has its part of the count, or of the schedule, from the
//! start. All times are nanoseconds from the start of the round.

/// How long after the end a message may still go that was due before: the loader may have been
/// looking elsewhere.
const GRACE: u64 = 100_000_000;

/// What decides about the messages of one connection.
#[derive(Debug)]
pub(super) struct Pace {
    /// The most messages in flight.
    cap: usize,
    /// What is sent before is warm-up, and no part of the count.
    start: u64,
    end: u64,
    /// Messages left to send; none where the time decides.
    left: Option<u64>,
    schedule: Option<Schedule>,
}

/// A fixed schedule: the latency of a call counts from the time it was due, so that a server which
/// holds up the loader does not hide the calls that were not sent meanwhile.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The next message among those of all connections.
    pub(super) next: u64,
    /// How many connections take turns.
    pub(super) turns: u64,
    /// Between two messages of all connections, in nanoseconds.
    pub(super) period: f64,
}

impl Schedule {
    fn due(&self) -> u64 {
        (self.next as f64 * self.period) as u64
    }
}

impl Pace {
    pub(super) fn new(
        cap: usize,
        (start, end): (u64, Option<u64>),
        left: Option<u64>,
        schedule: Option<Schedule>,
    ) -> Self {
        Self { cap, start, end: end.unwrap_or(u64::MAX), left, schedule }
    }

    /// Takes leave to send a message; gives the time its latency counts from.
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

    /// Whether nothing more will be sent.
    pub(super) fn is_over(&self, now: u64) -> bool {
        let is_scheduled_out = self.schedule.as_ref().is_some_and(|next| next.due() >= self.end);
        now >= self.end() || is_scheduled_out || self.left == Some(0)
    }

    /// When nothing more goes.
    pub(super) fn end(&self) -> u64 {
        self.end.saturating_add(if self.schedule.is_some() { GRACE } else { 0 })
    }

    /// When the next message is due, where that is what it waits for.
    pub(super) fn due(&self, in_flight: usize) -> Option<u64> {
        self.schedule.as_ref().filter(|_| in_flight < self.cap).map(Schedule::due)
    }

    /// Whether calls are counted out, so that no time ends it.
    pub(super) fn is_counted(&self) -> bool {
        self.left.is_some()
    }

    /// The messages of the count that were not sent, or those that were due before the end, but for
    /// the warm-up.
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
    fn a_closed_loop_sends_when_there_is_room_and_time() {
        let mut pace = Pace::new(2, (0, Some(100)), None, None);
        assert_eq!([pace.take(5, 0), pace.take(5, 1), pace.take(5, 2)], [Some(5), Some(5), None]);
        assert_eq!((pace.take(100, 0), pace.is_over(100), pace.due(0)), (None, true, None));
        assert_eq!(pace.missed(), 0);
    }

    #[test]
    fn a_count_begins_after_the_warm_up() {
        let mut pace = Pace::new(9, (10, None), Some(2), None);
        let sent = [1, 9, 10, 11, 12].map(|now| pace.take(now, 0));
        assert_eq!(sent, [Some(1), Some(9), Some(10), Some(11), None]);
        assert_eq!((pace.is_over(12), pace.missed()), (true, 0));
    }

    #[test]
    fn a_schedule_counts_from_when_a_call_was_due() {
        // Connection 1 of 2, a message each 10 ns: due at 10, 30, 50, 70, 90.
        let schedule = Schedule { next: 1, turns: 2, period: 10.0 };
        let mut pace = Pace::new(9, (0, Some(100)), None, Some(schedule));
        assert_eq!((pace.take(9, 0), pace.due(0)), (None, Some(10)));
        assert_eq!(
            [pace.take(35, 0), pace.take(35, 1), pace.take(35, 2)],
            [Some(10), Some(30), None]
        );
        assert_eq!((pace.take(60, 9), pace.due(9)), (None, None));
        // A little after the end, what was due before may go.
        assert_eq!((pace.take(100, 0), pace.missed()), (Some(50), 2));
        assert_eq!((pace.take(100 + GRACE, 0), pace.missed()), (None, 2));
        assert_eq!([pace.take(101, 0), pace.take(101, 0)], [Some(70), Some(90)]);
        assert_eq!((pace.take(101, 0), pace.is_over(101), pace.missed()), (None, true, 0));
        let schedule = Schedule { next: 1, turns: 2, period: 10.0 };
        assert_eq!(Pace::new(9, (30, Some(100)), None, Some(schedule)).missed(), 4);
    }
}
