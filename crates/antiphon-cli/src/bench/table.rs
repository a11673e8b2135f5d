//! The report as text: one table, and below it the errors.

use std::fmt::Write as _;

use super::report::{BenchReport, Figures};
use crate::output;

/// Formats the report.
pub(super) fn text(report: &BenchReport, load: &str) -> String {
    let mut out = format!("{load}\n\n{}", table(report));
    let several = report.targets.len() > 1;
    for target in &report.targets {
        for (kind, count, sample) in target.failures.iter() {
            let name = if several { format!("{}: ", target.name) } else { String::new() };
            let sample = output::visible(sample).replace('\n', " ");
            let sample =
                if sample.is_empty() { sample } else { format!(", for example: {sample}") };
            let _ = write!(out, "\n{name}{} x {kind}{sample}", grouped(count as f64));
        }
        if target.reconnects > 0 {
            let name = if several { format!("{}: ", target.name) } else { String::new() };
            let again = grouped(target.reconnects as f64);
            let _ =
                write!(out, "\n{name}{again} connections reopened after the server closed them");
        }
    }
    out
}

fn table(report: &BenchReport) -> String {
    let several = report.targets.len() > 1;
    let rounds = report.targets.iter().any(|target| target.rounds.len() > 1);
    let columns = columns(several, rounds);
    let mut rows = vec![columns.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()];
    for target in &report.targets {
        rows.push(columns.iter().map(|(_, cell)| cell(target)).collect());
    }
    aligned(&rows, several)
}

type Column = (&'static str, fn(&Figures) -> String);

/// Returns the columns. Some are shown only with several endpoints or rounds.
fn columns(several: bool, rounds: bool) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    if several {
        columns.push(("", |target| target.name.clone()));
    }
    columns.push(("calls/s", |target| grouped(target.calls_per_second)));
    if rounds {
        columns.push(("min..max", |target| {
            format!("{}..{}", grouped(target.spread.min), grouped(target.spread.max))
        }));
    }
    if several {
        columns.push(("ratio", |target| format!("{:.2}", target.ratio)));
    }
    columns.push(("p50", |target| time(target.latency_us.p50)));
    if !several {
        columns.push(("p90", |target| time(target.latency_us.p90)));
    }
    columns.push(("p99", |target| time(target.latency_us.p99)));
    if !several {
        columns.push(("p99.9", |target| time(target.latency_us.p999)));
        columns.push(("max", |target| time(target.latency_us.max)));
    }
    columns.push(("errors", |target| match target.failures.total() {
        0 => "none".to_owned(),
        some => grouped(some as f64),
    }));
    columns
}

/// Aligns columns to the right, except names.
fn aligned(rows: &[Vec<String>], first_is_name: bool) -> String {
    let count = rows.first().map_or(0, Vec::len);
    let widest = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(widest).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if at == 0 { "" } else { "  " };
            let _ = match at {
                0 if first_is_name => write!(line, "{gap}{cell:<width$}"),
                _ => write!(line, "{gap}{cell:>width$}"),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// Returns the calls per second, or 0 for no time.
pub(super) fn per_second(calls: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { calls as f64 / seconds } else { 0.0 }
}

/// Formats a number with thousands separators. Small numbers have one decimal.
pub(super) fn grouped(number: f64) -> String {
    if number < 100.0 && number.fract() != 0.0 {
        return format!("{number:.1}");
    }
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats microseconds with three digits.
fn time(micros: f64) -> String {
    let (number, unit) = match micros {
        0.0 => return "-".to_owned(),
        ..999.5 => (micros, "µs"),
        ..999_500.0 => (micros / 1e3, "ms"),
        _ => (micros / 1e6, "s"),
    };
    match number {
        ..9.995 => format!("{number:.2} {unit}"),
        ..99.95 => format!("{number:.1} {unit}"),
        _ => format!("{number:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_short() {
        for (number, text) in
            [(0.0, "0"), (3.25, "3.2"), (99.0, "99"), (999.6, "1,000"), (1_234_567.0, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
        for (micros, text) in [
            (0.0, "-"),
            (0.512, "0.51 µs"),
            (9.999, "10.0 µs"),
            (12.34, "12.3 µs"),
            (980.1, "980 µs"),
            (999.7, "1.00 ms"),
            (1_234.0, "1.23 ms"),
            (2_500_000.0, "2.50 s"),
            (120_000_000.0, "120 s"),
        ] {
            assert_eq!(time(micros), text);
        }
    }

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["", "calls/s"]), row(["long name", "1"]), row(["b", "12,345"])];
        let lines = ["           calls/s", "long name        1", "b           12,345"];
        assert_eq!(aligned(&rows, true), lines.join("\n"));
    }
}
