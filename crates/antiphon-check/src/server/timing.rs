//! Decides how long to wait for the server, and adapts the times to it.
//!
//! A server that hangs often gets a short timeout, so that the run ends. A server that drops calls gets earlier probes.
//! The first silences always have the full timeout, so that a slow server is not blamed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// After this many hangs, the timeout becomes short.
const MANY: u64 = 3;
/// The shortest timeout of a server that hangs, unless its calls are slower.
const SHORT: Duration = Duration::from_millis(250);
const MANY_DROPS: u64 = 10;
/// This many silences are confirmed with the full timeout, so that a slow server is not blamed.
const SURE: u64 = 2;
/// The time for a new process to reply to its first call. Some language servers start slowly.
const START: Duration = Duration::from_secs(10);
const MIB: usize = 1 << 20;
/// The delay before an early probe to a fast server.
pub(crate) const PROBE_DELAY: Duration = Duration::from_millis(50);

/// The timeouts and delays of a run, and the observations that they depend on.
pub(crate) struct Timing {
    /// The timeout of one reply.
    timeout: Duration,
    /// The end of the whole run.
    pub(crate) deadline: Instant,
    /// The delay before an early probe. `None` for the user's own transcripts, whose methods may be
    /// slow.
    probe_delay: Option<Duration>,
    /// The number of replies that did not arrive within the timeout.
    hangs: AtomicU64,
    /// The number of calls without a reply, though a later call got one.
    drops: AtomicU64,
    /// The duration of an ordinary call at the start.
    call: Duration,
    /// The duration of the slowest probe, in milliseconds.
    slowest: AtomicU64,
    /// The largest delay of a reply that a later call's reply overtook, in milliseconds.
    lateness: AtomicU64,
    /// The factor of the timeout; larger for attacks.
    factor: AtomicU32,
}

impl Timing {
    pub(crate) fn new(timeout: Duration, deadline: Instant, probe_delay: Option<Duration>) -> Self {
        let [hangs, drops, slowest, lateness] = [0; 4].map(AtomicU64::new);
        let (call, factor) = (Duration::ZERO, AtomicU32::new(1));
        Self { timeout, deadline, probe_delay, hangs, drops, call, slowest, lateness, factor }
    }

    /// Returns the timeout of a reply that a case expects.
    pub(crate) fn reply_timeout(&self) -> Duration {
        let is_attack = self.factor.load(Ordering::Relaxed) > 1;
        match self.hangs.load(Ordering::Relaxed) {
            hangs if !is_attack && (hangs >= MANY || hangs > 0 && self.drops_calls(hangs)) => {
                let slowest = Duration::from_millis(self.slowest.load(Ordering::Relaxed));
                self.full_timeout().min(SHORT.max(10 * self.call).max(2 * slowest))
            }
            _ => self.full_timeout(),
        }
    }

    /// Reports whether the server was silent often enough because it drops calls, and was never late.
    fn drops_calls(&self, hangs: u64) -> bool {
        let silences = hangs + self.drops.load(Ordering::Relaxed);
        silences >= SURE && self.lateness.load(Ordering::Relaxed) == 0
    }

    /// Returns the full timeout, for replies that decide whether the server is alive.
    pub(crate) fn full_timeout(&self) -> Duration {
        let timeout = self.timeout.saturating_mul(self.factor.load(Ordering::Relaxed));
        timeout.min(self.rest())
    }

    /// Returns the time for the server to read a message of this length: more for a large one. A silent server may still
    /// read, so it is never short.
    pub(crate) fn send_timeout(&self, length: usize) -> Duration {
        let factor = u32::try_from(length / MIB).unwrap_or(u32::MAX).saturating_add(1);
        self.timeout.saturating_mul(factor).max(self.full_timeout()).min(self.rest())
    }

    /// Returns the timeout of the first reply of a process.
    pub(crate) fn start_timeout(&self) -> Duration {
        self.full_timeout().max(START).min(self.rest())
    }

    /// Returns the time until the end of the run.
    fn rest(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Sets whether the next case is an attack. The server may need longer to read it.
    pub(crate) fn attacks(&self, is_hostile: bool) {
        self.factor.store(if is_hostile { 5 } else { 1 }, Ordering::Relaxed);
    }

    /// Returns the delay before an early probe, and the delay after its reply. Both shrink for a server
    /// that drops calls, more so if it was never late.
    pub(crate) fn probe_delays(&self) -> Option<(Duration, Duration)> {
        let late = Duration::from_millis(self.lateness.load(Ordering::Relaxed));
        let probe_delay = self.probe_delay?.max(2 * late);
        match self.drops.load(Ordering::Relaxed) {
            ..SURE => Some((probe_delay, self.reply_timeout())),
            SURE..MANY_DROPS => Some((probe_delay, 2 * probe_delay)),
            _ if late.is_zero() => Some((probe_delay / 4, probe_delay / 4)),
            _ => Some((probe_delay / 2, probe_delay / 2)),
        }
    }

    /// Records a reply that was overtaken, and its delay.
    pub(crate) fn record_overtaken(&self, took: Duration) {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.lateness.fetch_max(took, Ordering::Relaxed);
    }

    /// Records a call without a reply, though a later call got one.
    pub(crate) fn record_drop(&self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a reply that did not arrive within the timeout.
    pub(crate) fn record_hang(&self) {
        self.hangs.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the duration of a probe. Under attack, a server may be slower.
    pub(crate) fn record_probe(&self, took: Duration) {
        if self.factor.load(Ordering::Relaxed) == 1 {
            let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            self.slowest.fetch_max(took, Ordering::Relaxed);
        }
    }

    /// Adapts the delays to the duration of an ordinary call.
    pub(crate) fn adapt_to(&mut self, call: Duration) {
        self.call = call;
        self.probe_delay = self.probe_delay.map(|probe_delay| probe_delay.max(5 * call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(timeout: Duration, probe_delay: Option<Duration>) -> Timing {
        Timing::new(timeout, Instant::now() + Duration::from_secs(3_600), probe_delay)
    }

    #[test]
    fn the_timeout_becomes_short_for_a_server_that_drops_calls() {
        let (timeout, call) = (Duration::from_secs(2), Duration::from_millis(70));
        let adapted = || {
            let mut timing = timing(timeout, None);
            timing.adapt_to(call);
            timing
        };
        let dropping = adapted();
        dropping.record_drop();
        // Silence to a later call, too, has the full timeout once.
        assert_eq!(dropping.reply_timeout(), timeout);
        dropping.record_hang();
        assert_eq!(dropping.reply_timeout(), 10 * call);
        dropping.attacks(true);
        assert_eq!(dropping.reply_timeout(), 5 * timeout);
        dropping.record_probe(timeout);
        dropping.attacks(false);
        assert_eq!(dropping.reply_timeout(), 10 * call);
        dropping.record_probe(9 * call);
        assert_eq!(dropping.reply_timeout(), 18 * call, "a loaded machine has longer timeouts");

        let late = adapted();
        (0..5).for_each(|_| late.record_drop());
        late.record_overtaken(Duration::from_millis(900));
        late.record_hang();
        assert_eq!(late.reply_timeout(), timeout, "its next reply may be late, too");
    }

    #[test]
    fn a_large_message_has_more_time() {
        let timeout = Duration::from_secs(2);
        let mut timing = timing(timeout, None);
        timing.adapt_to(Duration::from_millis(1));
        timing.record_drop();
        timing.record_hang();
        assert_eq!(timing.reply_timeout(), SHORT);
        assert_eq!(
            [100, 4 * MIB].map(|length| timing.send_timeout(length)),
            [timeout, 5 * timeout]
        );
        timing.attacks(true);
        assert_eq!(timing.send_timeout(100), 5 * timeout);
    }

    #[test]
    fn the_probes_follow_faster_after_many_dropped_calls() {
        let (timeout, delay) = (Duration::from_secs(2), Duration::from_millis(80));
        let timing = timing(timeout, Some(delay));
        let mut found = Vec::new();
        for _ in 0..=MANY_DROPS {
            found.extend(timing.probe_delays());
            timing.record_drop();
        }
        assert_eq!(found[..2], [(delay, timeout); 2], "the reply may be late");
        assert_eq!(found[2..10], [(delay, 2 * delay); 8]);
        assert_eq!(found[10], (delay / 4, delay / 4));
        timing.record_overtaken(timeout);
        assert_eq!(timing.probe_delays(), Some((timeout, timeout)), "it was late once");
    }
}
