//! A load and the figures of its servers, as a table of Markdown.

use crate::contenders::Load;
use crate::spread::{Figure, Spread};

pub(crate) struct Row {
    name: &'static str,
    spread: Spread,
    /// The median of the CPU time per call.
    cpu_micros: Option<f64>,
}

impl Row {
    /// Needs at least one measurement.
    pub(crate) fn new(name: &'static str, taken: &[Figure]) -> Self {
        let spread = Spread::of(taken.iter().map(|figure| figure.value).collect());
        let cpu: Option<Vec<f64>> = taken.iter().map(|figure| figure.cpu_micros).collect();
        Self { name, spread, cpu_micros: cpu.map(|values| Spread::of(values).median) }
    }
}

pub(crate) fn write(load: Load, rows: &[Row]) -> String {
    let heads = match load {
        Load::IdleSessions => "| server | median | least | most |\n|---|---:|---:|---:|",
        _ => {
            "| server | median | slowest | fastest | CPU per call, µs |\n|---|---:|---:|---:|---:|"
        }
    };
    let mut text = format!("\n## {}\n\n{heads}\n", load.title());
    for Row { name, spread: Spread { median, min, max }, cpu_micros } in rows {
        text +=
            &format!("| {name} | {} | {} | {} |", grouped(*median), grouped(*min), grouped(*max));
        if let Some(micros) = cpu_micros {
            text += &format!(" {micros:.1} |");
        }
        text.push('\n');
    }
    text
}

/// A whole number with commas.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
