//! RESULTS.md: only measured figures, and the hand-written notes.

mod costs;
mod servers;
mod table;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use table::{Table, digits, or_dash};

use crate::goals::{self, Bound};
use crate::machine::Machine;
use crate::results::Results;

pub(crate) fn write(results: &Results, notes: &str) -> String {
    let sections = [
        head(&results.machine),
        goals(results),
        servers::all(results),
        costs::all(results),
        notes.to_owned(),
    ];
    sections.concat()
}

fn head(machine: &Machine) -> String {
    let versions: Vec<_> =
        machine.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    format!(
        "# Results\n\n\
         Written by `bench/run`; [README.md](README.md) describes the method, and \
         `results.json` has every figure.\n\n\
         ![Calls per second, as multiples of jsonrpsee's](ratios.svg)\n\n\
         Machine: {}, {} cores, Linux {}, {}, Node {}. The server has one core and the load the \
         other.\n\nVersions: {}.\n\n",
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.rustc,
        machine.node,
        versions.join(", ")
    )
}

fn goals(results: &Results) -> String {
    let mut table = Table::new(["goal", "wanted", "measured", "reached"]);
    for goal in goals::all(results) {
        let wanted = match goal.bound {
            Bound::AtLeast(least) => format!("at least {}", digits(least)),
            Bound::AtMost(most) => format!("at most {}", digits(most)),
        };
        let reached = goal.is_reached().map(|yes| if yes { "yes" } else { "**no**" }.to_owned());
        table.row([goal.what, wanted, or_dash(goal.measured.map(digits)), or_dash(reached)]);
    }
    format!("## Goals\n\n{}", table.finish())
}

/// A heading, the date and the content; empty if nothing was measured.
fn section(title: &str, dates: &BTreeSet<&str>, text: &str) -> String {
    if dates.is_empty() {
        return String::new();
    }
    let dates: Vec<_> = dates.iter().copied().collect();
    let mut section = String::new();
    let _ = write!(section, "## {title}\n\nMeasured on {}. {text}", dates.join(" and "));
    section
}
