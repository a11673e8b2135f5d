//! What has been counted: calls, their latency, and what went wrong, by kind.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;

use crate::exit::Exit;

/// The longest latency that is told apart, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// Kinds are told apart up to this many: the codes are of the peer's choosing.
const MAX_KINDS: usize = 64;

/// How many characters of a peer's text are kept.
const MAX_SAMPLE: usize = 200;

/// What can go wrong with a call, or with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// An error Response with this code.
    Error(i64),
    /// An HTTP status that is no success.
    Http(u16),
    WrongId,
    WrongResult,
    /// No valid Response.
    Protocol,
    /// The connection ended before the answer.
    Lost,
    /// A connection could not be made.
    Connect,
    Timeout,
    /// Due by the schedule, and not sent before the end.
    Late,
    /// Asked for by count, and not sent since the peer was gone.
    Unsent,
    /// Of more kinds than are told apart.
    Other,
}

impl Kind {
    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Error(_) | Self::Other => Exit::PeerError,
            Self::Http(_) | Self::Lost | Self::Connect | Self::Unsent => Exit::Transport,
            Self::Timeout | Self::Late => Exit::Timeout,
            Self::WrongId | Self::WrongResult | Self::Protocol => Exit::Protocol,
        }
    }
}

impl fmt::Display for Kind {
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

/// Some calls that failed alike.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) calls: u64,
    /// What was said of the first of them.
    pub(super) sample: String,
}

impl Fault {
    pub(super) fn new(kind: Kind, calls: u64, sample: impl Into<String>) -> Self {
        Self { kind, calls, sample: sample.into() }
    }
}

/// How many of each kind, and what was said of the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults(BTreeMap<Kind, (u64, String)>);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        let known = self.0.len() < MAX_KINDS || self.0.contains_key(&fault.kind);
        let kind = if known { fault.kind } else { Kind::Other };
        let (count, _) = self.0.entry(kind).or_insert_with(|| (0, shortened(fault.sample)));
        *count += fault.calls;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (kind, calls, sample) in other.iter() {
            self.add(Fault::new(kind, calls, sample));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Kind, u64, &str)> {
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

/// Which part of a round is measured, in nanoseconds from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// When the warm-up ends.
    pub(super) start: u64,
    /// When no more is sent; none where calls are counted out.
    pub(super) end: Option<u64>,
}

impl Window {
    /// Whether a call counts. By time, those that are answered within it do: a straggler then
    /// does not stretch the time that all others are divided by. By count, those that were sent
    /// after the warm-up.
    fn counts(&self, sent: u64, now: u64) -> bool {
        match self.end {
            Some(end) => now >= self.start && now < end,
            None => sent >= self.start,
        }
    }
}

/// The counts of one round, or of a part of it.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) window: Window,
    /// Calls that got their result.
    pub(super) calls: u64,
    /// Of exchanges in nanoseconds, each sent after the warm-up, and answered whenever.
    pub(super) latency: Histogram<u64>,
    pub(super) faults: Faults,
    /// Connections that were made anew because the peer had ended them in good order.
    pub(super) reconnects: u64,
    /// When the last answer came.
    pub(super) last: u64,
}

impl Tally {
    pub(super) fn new(window: Window) -> Self {
        let latency = Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are in order");
        Self { window, calls: 0, latency, faults: Faults::default(), reconnects: 0, last: 0 }
    }

    /// One exchange is done, with the results of so many calls.
    pub(super) fn answered(&mut self, calls: u64, sent: u64, now: u64) {
        self.last = now;
        if self.window.counts(sent, now) {
            self.calls += calls;
        }
        if sent >= self.window.start {
            self.latency.saturating_record(now.saturating_sub(sent));
        }
    }

    pub(super) fn fault(&mut self, fault: Fault, now: u64) {
        if now >= self.window.start {
            self.faults.add(fault);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.latency.add(&other.latency).expect("the bounds are the same");
        self.faults.merge(&other.faults);
        self.reconnects += other.reconnects;
        self.last = self.last.max(other.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_makes_up_stays_small() {
        let mut faults = Faults::default();
        for code in 0..1_000 {
            faults.add(Fault::new(Kind::Error(code), 1, "é".repeat(1_000)));
        }
        assert_eq!((faults.iter().count(), faults.total()), (MAX_KINDS + 1, 1_000));
        assert!(faults.iter().all(|(_, _, sample)| sample.chars().count() <= MAX_SAMPLE + 3));
    }

    #[test]
    fn the_warm_up_and_the_stragglers_do_not_count() {
        let mut timed = Tally::new(Window { start: 100, end: Some(200) });
        for (sent, now) in [(0, 50), (90, 110), (110, 150), (190, 210)] {
            timed.answered(1, sent, now);
        }
        timed.fault(Fault::new(Kind::Lost, 1, ""), 50);
        assert_eq!((timed.calls, timed.latency.len(), timed.faults.total()), (2, 2, 0));
        let mut counted = Tally::new(Window { start: 100, end: None });
        for (sent, now) in [(0, 50), (90, 110), (110, 150), (190, 210)] {
            counted.answered(3, sent, now);
        }
        assert_eq!((counted.calls, counted.latency.len()), (6, 2));
    }
}
