//! The report in the Test Anything Protocol, version 14. Only a failure is `not ok`, with a baseline only
//! what is worse; a known failure is a TODO, and what was not run is skipped.

use std::fmt::Write as _;

use super::{CheckReport, CiStatus, text};
use crate::result::{CaseResult, CaseStatus};

pub(super) fn report(report: &CheckReport) -> String {
    let mut out = format!("TAP version 14\n1..{}\n", report.results.len());
    for (index, outcome) in report.results.iter().enumerate() {
        line(report, index + 1, outcome, &mut out);
    }
    out
}

fn line(report: &CheckReport, number: usize, outcome: &CaseResult, out: &mut String) {
    let colour = report.colour(outcome);
    let ok = if matches!(colour, CiStatus::Red | CiStatus::Known) { "not ok" } else { "ok" };
    let CaseResult { group, name, title, .. } = outcome;
    let title = title.replace('\\', "\\\\").replace('#', "\\#");
    let directive = match (colour, &outcome.reason) {
        (CiStatus::Known, _) => " # TODO known".to_owned(),
        (CiStatus::Skipped, Some(reason)) => format!(" # SKIP {}", reason.replace('\n', " ")),
        _ => String::new(),
    };
    let _ = writeln!(out, "{ok} {number} - {group}/{name}: {title}{directive}");
    if let Some(change) = report.told_change(outcome) {
        let _ = writeln!(out, "# {change}");
    }
    if matches!(outcome.status, CaseStatus::Failed | CaseStatus::Warned | CaseStatus::Differs) {
        let _ = writeln!(out, "# {}", outcome.status);
        for line in text::details(outcome).lines() {
            let _ = writeln!(out, "# {line}");
        }
    }
}
