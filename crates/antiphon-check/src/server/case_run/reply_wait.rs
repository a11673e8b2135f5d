//! The wait for one reply: when to probe, and when silence is proven.
//!
//! If a reply does not arrive soon, a probe is sent. If the probe's reply arrives first, the server has either
//! dropped the call or is late, so the wait continues for a while. It ends with the reply to a second probe, so it
//! lasts longer on a slow machine.

use std::time::Duration;

use tokio::time::Instant;

/// The wait for one reply.
pub(super) struct ReplyWait {
    stage: WaitStage,
    /// The time of the next change; the end at the latest.
    until: Instant,
    end: Instant,
    /// The delay after the reply to the first probe.
    grace: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitStage {
    /// No probe was sent.
    Unprobed,
    /// The first probe is in flight.
    Probed,
    /// The reply to the first probe has arrived.
    Overtaken,
    /// The second probe is in flight.
    Confirming,
}

/// What follows from an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// The wait continues.
    None,
    /// A probe must be sent.
    Probe,
    /// No reply will arrive.
    Silence,
}

impl ReplyWait {
    /// Begins a wait. `delays` are the times before the first probe and after its reply; `None` means
    /// that there is no probe.
    pub(super) fn new(
        begun: Instant,
        timeout: Duration,
        delays: Option<(Duration, Duration)>,
    ) -> Self {
        let end = begun + timeout;
        let (delay, grace) = delays.unwrap_or((timeout, Duration::ZERO));
        Self { stage: WaitStage::Unprobed, until: end.min(begun + delay), end, grace }
    }

    /// Returns the time at which [`Self::passed`] is called.
    pub(super) fn deadline(&self) -> Instant {
        self.until
    }

    /// Reports whether a later call got its reply first.
    pub(super) fn is_overtaken(&self) -> bool {
        matches!(self.stage, WaitStage::Overtaken | WaitStage::Confirming)
    }

    /// The reply to the probe has arrived.
    pub(super) fn overtaken(&mut self) -> WaitEnd {
        if self.stage == WaitStage::Confirming {
            return WaitEnd::Silence;
        }
        self.stage = WaitStage::Overtaken;
        self.until = self.end.min(Instant::now() + self.grace);
        WaitEnd::None
    }

    /// The deadline has passed.
    pub(super) fn passed(&mut self) -> WaitEnd {
        if self.until >= self.end {
            return WaitEnd::Silence;
        }
        self.stage = match self.stage {
            WaitStage::Overtaken => WaitStage::Confirming,
            _ => WaitStage::Probed,
        };
        self.until = self.end;
        WaitEnd::Probe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn silence_is_confirmed_by_a_second_probe() {
        let begun = Instant::now();
        let mut wait = ReplyWait::new(begun, 90 * SECOND, Some((SECOND, SECOND)));
        assert_eq!(wait.deadline(), begun + SECOND);
        assert_eq!(wait.passed(), WaitEnd::Probe);
        assert_eq!((wait.deadline(), wait.is_overtaken()), (begun + 90 * SECOND, false));
        assert_eq!(wait.overtaken(), WaitEnd::None);
        assert!(wait.deadline() < begun + 60 * SECOND && wait.is_overtaken());
        assert_eq!(wait.passed(), WaitEnd::Probe);
        assert_eq!(wait.deadline(), begun + 90 * SECOND);
        assert_eq!(wait.overtaken(), WaitEnd::Silence);
    }

    #[test]
    fn without_a_probe_the_whole_timeout_passes() {
        let begun = Instant::now();
        for delays in [None, Some((9 * SECOND, SECOND)), Some((2 * SECOND, SECOND))] {
            let mut wait = ReplyWait::new(begun, 2 * SECOND, delays);
            assert_eq!(wait.deadline(), begun + 2 * SECOND);
            assert_eq!(wait.passed(), WaitEnd::Silence, "{delays:?}");
        }
    }
}
