//! What all rounds come to. Its JSON is for programs to rely on: names stay as they are.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::round::Measured;
use super::table::per_second;
use super::tally::Faults;
use crate::exit::Exit;

/// The document of `--format json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) method: String,
    pub(super) connections: usize,
    pub(super) in_flight: usize,
    pub(super) batch: Option<usize>,
    pub(super) rate: Option<usize>,
    pub(super) rounds: usize,
    pub(super) targets: Vec<Figures>,
}

/// The figures of one endpoint.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) name: String,
    pub(super) endpoint: String,
    /// The median of its rounds.
    pub(super) calls_per_second: f64,
    pub(super) spread: Spread,
    /// To the first endpoint.
    pub(super) ratio: f64,
    /// Of all rounds together.
    pub(super) latency_us: Latency,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) rounds: Vec<RoundFigures>,
    #[serde(skip)]
    pub(super) faults: Faults,
    #[serde(skip)]
    pub(super) reconnects: u64,
}

/// Between the slowest and the fastest round.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) max: f64,
}

/// The figures of one round.
#[derive(Debug, Serialize)]
pub(super) struct RoundFigures {
    pub(super) calls: u64,
    pub(super) seconds: f64,
    pub(super) calls_per_second: f64,
    pub(super) latency_us: Latency,
    pub(super) errors: BTreeMap<String, u64>,
}

/// In microseconds; all 0 where nothing was answered.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Latency {
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    #[serde(rename = "p99.9")]
    pub(super) p999: f64,
    pub(super) max: f64,
}

impl Report {
    /// The worst of what went wrong.
    pub(super) fn exit(&self) -> Exit {
        let kinds = self.targets.iter().flat_map(|target| target.faults.iter());
        kinds.map(|(kind, ..)| kind.exit()).max().unwrap_or(Exit::Success)
    }
}

impl Figures {
    /// Of the rounds of one endpoint; the first endpoint is what others are compared with.
    pub(super) fn new(
        (name, endpoint): (String, String),
        rounds: &[Measured],
        first: Option<&Self>,
    ) -> Self {
        let mut speeds: Vec<f64> = rounds.iter().map(speed).collect();
        speeds.sort_by(f64::total_cmp);
        let calls_per_second = median(&speeds);
        let to_first = first.map_or(1.0, |first| calls_per_second / first.calls_per_second);
        let mut faults = Faults::default();
        rounds.iter().for_each(|round| faults.merge(&round.tally.faults));
        let edge = |speed: Option<&f64>| rounded(speed.copied().unwrap_or_default());
        Self {
            name,
            endpoint,
            calls_per_second: rounded(calls_per_second),
            spread: Spread { min: edge(speeds.first()), max: edge(speeds.last()) },
            ratio: if to_first.is_finite() { rounded(to_first) } else { 0.0 },
            latency_us: Latency::of_all(rounds),
            errors: counts(&faults),
            rounds: rounds.iter().map(RoundFigures::new).collect(),
            faults,
            reconnects: rounds.iter().map(|round| round.tally.reconnects).sum(),
        }
    }
}

impl RoundFigures {
    fn new(round: &Measured) -> Self {
        Self {
            calls: round.tally.calls,
            seconds: round.seconds,
            calls_per_second: rounded(speed(round)),
            latency_us: Latency::of(&round.tally.latency),
            errors: counts(&round.tally.faults),
        }
    }
}

impl Latency {
    fn of(nanos: &Histogram<u64>) -> Self {
        let at = |quantile| nanos.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            mean: rounded(nanos.mean() / 1e3),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: nanos.max() as f64 / 1e3,
        }
    }

    fn of_all(rounds: &[Measured]) -> Self {
        let Some((first, others)) = rounds.split_first() else {
            return Self { mean: 0.0, p50: 0.0, p90: 0.0, p99: 0.0, p999: 0.0, max: 0.0 };
        };
        let mut all = first.tally.latency.clone();
        for round in others {
            all.add(&round.tally.latency).expect("the bounds are the same");
        }
        Self::of(&all)
    }
}

fn speed(round: &Measured) -> f64 {
    per_second(round.tally.calls, round.seconds)
}

fn counts(faults: &Faults) -> BTreeMap<String, u64> {
    faults.iter().map(|(kind, count, _)| (kind.to_string(), count)).collect()
}

/// Of numbers in order: the middle one, or between the two in the middle.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted {
        [] => 0.0,
        _ if sorted.len() % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// To a thousandth.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
    }
}
