//! The statistics of a round: calls, latency, and failures by kind.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;

use crate::exit::Exit;

/// The highest latency that the histogram records, in nanoseconds: one hour.
const LONGEST: u64 = 3_600_000_000_000;

/// The maximum number of kinds, since a peer may send any error code.
const MAX_KINDS: usize = 64;

/// The number of characters kept of a peer's text.
const MAX_SAMPLE: usize = 200;

/// The kinds of failures of a call or a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FailedCallKind {
    /// An error response with this code.
    Error(i64),
    /// An HTTP status other than success.
    Http(u16),
    WrongId,
    WrongResult,
    /// Not a valid response.
    Protocol,
    /// The connection ended before the reply.
    Lost,
    /// A connection failed to open.
    Connect,
    Timeout,
    /// Due by the schedule, but not sent before the end of the round.
    Late,
    /// Part of `--count`, but not sent because the peer was gone.
    Unsent,
    /// Any kind beyond [`MAX_KINDS`].
    Other,
}

impl FailedCallKind {
    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Error(_) | Self::Other => Exit::PeerError,
            Self::Http(_) | Self::Lost | Self::Connect | Self::Unsent => Exit::Transport,
            Self::Timeout | Self::Late => Exit::Timeout,
            Self::WrongId | Self::WrongResult | Self::Protocol => Exit::Protocol,
        }
    }
}

impl fmt::Display for FailedCallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(code) => write!(f, "error {code}"),
            Self::Http(status) => write!(f, "http {status}"),
            Self::WrongId => f.write_str("wrong id"),
            Self::WrongResult => f.write_str("wrong result"),
            Self::Protocol => f.write_str("protocol"),
            Self::Lost => f.write_str("lost"),
            Self::Connect => f.write_str("connect"),
            Self::Timeout => f.write_str("timeout"),
            Self::Late => f.write_str("late"),
            Self::Unsent => f.write_str("unsent"),
            Self::Other => f.write_str("other"),
        }
    }
}

/// Calls that failed for one reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FailedCalls {
    pub(super) kind: FailedCallKind,
    pub(super) calls: u64,
    /// The message of the first failure.
    pub(super) sample: String,
}

impl FailedCalls {
    pub(super) fn new(kind: FailedCallKind, calls: u64, sample: impl Into<String>) -> Self {
        Self { kind, calls, sample: sample.into() }
    }
}

/// The number of failures of each kind, with the message of the first.
#[derive(Clone, Debug, Default)]
pub(super) struct FailureCounts(BTreeMap<FailedCallKind, (u64, String)>);

impl FailureCounts {
    pub(super) fn add(&mut self, failed: FailedCalls) {
        let known = self.0.len() < MAX_KINDS || self.0.contains_key(&failed.kind);
        let kind = if known { failed.kind } else { FailedCallKind::Other };
        let (count, _) = self.0.entry(kind).or_insert_with(|| (0, shortened(failed.sample)));
        *count += failed.calls;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (kind, calls, sample) in other.iter() {
            self.add(FailedCalls::new(kind, calls, sample));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (FailedCallKind, u64, &str)> {
        self.0.iter().map(|(kind, (count, sample))| (*kind, *count, sample.as_str()))
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }
}

fn shortened(mut sample: String) -> String {
    if let Some((at, _)) = sample.char_indices().nth(MAX_SAMPLE) {
        sample.truncate(at);
        sample.push_str("...");
    }
    sample
}

/// The measured part of a round, in nanoseconds from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The end of the warm-up.
    pub(super) start: u64,
    /// The time of the last send; `None` with `--count`.
    pub(super) end: Option<u64>,
}

impl Window {
    /// Returns whether a call counts. With `--duration`, a call counts if its reply arrives in the
    /// window: a slow reply then does not lengthen the measured time. With `--count`, a call counts if
    /// it was sent after the warm-up.
    fn counts(&self, sent: u64, now: u64) -> bool {
        match self.end {
            Some(end) => now >= self.start && now < end,
            None => sent >= self.start,
        }
    }
}

/// The statistics of a round, or of one of its threads.
#[derive(Clone, Debug)]
pub(super) struct RoundStats {
    pub(super) window: Window,
    /// Successful calls.
    pub(super) calls: u64,
    /// The latency in nanoseconds of each message that was sent after the warm-up.
    pub(super) latency: Histogram<u64>,
    pub(super) failures: FailureCounts,
    /// Connections reopened after the peer closed them cleanly.
    pub(super) reconnects: u64,
    /// The time of the last reply.
    pub(super) last: u64,
}

impl RoundStats {
    pub(super) fn new(window: Window) -> Self {
        let latency = Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are in order");
        Self {
            window,
            calls: 0,
            latency,
            failures: FailureCounts::default(),
            reconnects: 0,
            last: 0,
        }
    }

    /// Records a reply with the results of `calls` calls.
    pub(super) fn record_reply(&mut self, calls: u64, sent: u64, now: u64) {
        self.last = now;
        if self.window.counts(sent, now) {
            self.calls += calls;
        }
        if sent >= self.window.start {
            self.latency.saturating_record(now.saturating_sub(sent));
        }
    }

    pub(super) fn record_failure(&mut self, failed: FailedCalls, now: u64) {
        if now >= self.window.start {
            self.failures.add(failed);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.latency.add(&other.latency).expect("the bounds are the same");
        self.failures.merge(&other.failures);
        self.reconnects += other.reconnects;
        self.last = self.last.max(other.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_bounded_for_any_peer() {
        let mut failures = FailureCounts::default();
        for code in 0..1_000 {
            failures.add(FailedCalls::new(FailedCallKind::Error(code), 1, "é".repeat(1_000)));
        }
        assert_eq!((failures.iter().count(), failures.total()), (MAX_KINDS + 1, 1_000));
        assert!(failures.iter().all(|(_, _, sample)| sample.chars().count() <= MAX_SAMPLE + 3));
    }

    #[test]
    fn calls_outside_the_window_do_not_count() {
        let mut timed = RoundStats::new(Window { start: 100, end: Some(200) });
        for (sent, now) in [(0, 50), (90, 110), (110, 150), (190, 210)] {
            timed.record_reply(1, sent, now);
        }
        timed.record_failure(FailedCalls::new(FailedCallKind::Lost, 1, ""), 50);
        assert_eq!((timed.calls, timed.latency.len(), timed.failures.total()), (2, 2, 0));
        let mut counted = RoundStats::new(Window { start: 100, end: None });
        for (sent, now) in [(0, 50), (90, 110), (110, 150), (190, 210)] {
            counted.record_reply(3, sent, now);
        }
        assert_eq!((counted.calls, counted.latency.len()), (6, 2));
    }
}
