//! The delay before the next connection attempt: exponential backoff with jitter.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use super::Reconnect;

/// The delays between consecutive attempts. Each delay is twice the last, up to a maximum. A random part
/// of up to one half is subtracted.
pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
    random: RandomState,
}

/// The base of the growth after a zero delay.
const LEAST: Duration = Duration::from_millis(5);

impl Backoff {
    pub(super) fn new(policy: &Reconnect) -> Self {
        Self { next: policy.shortest, longest: policy.longest, random: RandomState::new() }
    }

    pub(super) fn pause(&mut self) -> Duration {
        let whole = self.next.min(self.longest);
        self.next = whole.max(LEAST).saturating_mul(2);
        // A random number between 0 and 1.
        let part = self.random.hash_one(self.next) as f64 / u64::MAX as f64;
        whole.mul_f64(1.0 - part / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_differ() {
        let policy = Reconnect::new().pause(Duration::from_secs(1), Duration::from_secs(60));
        let mut pauses = Backoff::new(&policy);
        for whole in [1, 2, 4, 8, 16, 32, 60, 60] {
            let whole = Duration::from_secs(whole);
            let pause = pauses.pause();
            assert!(pause <= whole && pause >= whole / 2, "{pause:?} of {whole:?}");
        }
        let firsts: Vec<_> = (0..20).map(|_| Backoff::new(&policy).pause()).collect();
        assert!(firsts.iter().any(|pause| *pause != firsts[0]));
    }

    #[test]
    fn extreme_durations_do_not_overflow() {
        let policy = Reconnect::new().pause(Duration::ZERO, Duration::MAX);
        assert_eq!(Backoff::new(&policy).pause(), Duration::ZERO);
        let mut longest = Backoff::new(&policy.pause(Duration::MAX, Duration::MAX));
        assert!(longest.pause() > Duration::from_secs(1) && longest.pause() > Duration::ZERO);
    }
}
