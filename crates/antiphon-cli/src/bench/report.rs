//! The results of all rounds. Programs rely on the JSON, so its names do not change.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::round::RoundResult;
use super::stats::FailureCounts;
use super::table::per_second;
use crate::exit::Exit;

/// The JSON document of `--format json`.
#[derive(Debug, Serialize)]
pub(super) struct BenchReport {
    pub(super) method: String,
    pub(super) connections: usize,
    pub(super) in_flight: usize,
    pub(super) batch: Option<usize>,
    pub(super) rate: Option<usize>,
    pub(super) rounds: usize,
    pub(super) targets: Vec<Figures>,
}

/// The results of one endpoint.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) name: String,
    pub(super) endpoint: String,
    /// The median of the rounds.
    pub(super) calls_per_second: f64,
    pub(super) spread: Spread,
    /// The ratio to the first endpoint.
    pub(super) ratio: f64,
    /// The latency over all rounds.
    pub(super) latency_us: Latency,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) rounds: Vec<RoundFigures>,
    #[serde(skip)]
    pub(super) failures: FailureCounts,
    #[serde(skip)]
    pub(super) reconnects: u64,
}

/// The slowest and the fastest round.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) max: f64,
}

/// The results of one round.
#[derive(Debug, Serialize)]
pub(super) struct RoundFigures {
    pub(super) calls: u64,
    pub(super) seconds: f64,
    pub(super) calls_per_second: f64,
    pub(super) latency_us: Latency,
    pub(super) errors: BTreeMap<String, u64>,
}

/// Latency in microseconds, all 0 without replies.
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

impl BenchReport {
    /// Returns the highest exit code of all failures.
    pub(super) fn exit(&self) -> Exit {
        let kinds = self.targets.iter().flat_map(|target| target.failures.iter());
        kinds.map(|(kind, ..)| kind.exit()).max().unwrap_or(Exit::Success)
    }
}

impl Figures {
    /// Summarizes the rounds of one endpoint. `first` is the endpoint to compare with.
    pub(super) fn new(
        (name, endpoint): (String, String),
        rounds: &[RoundResult],
        first: Option<&Self>,
    ) -> Self {
        let mut speeds: Vec<f64> = rounds.iter().map(speed).collect();
        speeds.sort_by(f64::total_cmp);
        let calls_per_second = median(&speeds);
        let to_first = first.map_or(1.0, |first| calls_per_second / first.calls_per_second);
        let mut failures = FailureCounts::default();
        rounds.iter().for_each(|round| failures.merge(&round.stats.failures));
        let edge = |speed: Option<&f64>| rounded(speed.copied().unwrap_or_default());
        Self {
            name,
            endpoint,
            calls_per_second: rounded(calls_per_second),
            spread: Spread { min: edge(speeds.first()), max: edge(speeds.last()) },
            ratio: if to_first.is_finite() { rounded(to_first) } else { 0.0 },
            latency_us: Latency::of_all(rounds),
            errors: counts(&failures),
            rounds: rounds.iter().map(RoundFigures::new).collect(),
            failures,
            reconnects: rounds.iter().map(|round| round.stats.reconnects).sum(),
        }
    }
}

impl RoundFigures {
    fn new(round: &RoundResult) -> Self {
        Self {
            calls: round.stats.calls,
            seconds: round.seconds,
            calls_per_second: rounded(speed(round)),
            latency_us: Latency::of(&round.stats.latency),
            errors: counts(&round.stats.failures),
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

    fn of_all(rounds: &[RoundResult]) -> Self {
        let Some((first, others)) = rounds.split_first() else {
            return Self { mean: 0.0, p50: 0.0, p90: 0.0, p99: 0.0, p999: 0.0, max: 0.0 };
        };
        let mut all = first.stats.latency.clone();
        for round in others {
            all.add(&round.stats.latency).expect("the bounds are the same");
        }
        Self::of(&all)
    }
}

fn speed(round: &RoundResult) -> f64 {
    per_second(round.stats.calls, round.seconds)
}

fn counts(failures: &FailureCounts) -> BTreeMap<String, u64> {
    failures.iter().map(|(kind, count, _)| (kind.to_string(), count)).collect()
}

/// Returns the median of sorted numbers.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted {
        [] => 0.0,
        _ if sorted.len() % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Rounds to three decimals.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
    }
}
