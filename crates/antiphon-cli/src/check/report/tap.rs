//! The report in the Test Anything Protocol, version 14. Only a failure is `not ok`, with a baseline only
//! what is worse; a known failure is a TODO, and what was not run is skipped.

use std::fmt::Write as _;

use super::{Colour, Report, text};
use crate::check::verdict::{Judged, Verdict};

pub(super) fn report(report: &Report) -> String {
    let mut out = format!("TAP version 14\n1..{}\n", report.judged.len());
    for (index, judged) in report.judged.iter().enumerate() {
        line(report, index + 1, judged, &mut out);
    }
    out
}

fn line(report: &Report, number: usize, judged: &Judged, out: &mut String) {
    let colour = report.colour(judged);
    let ok = if matches!(colour, Colour::Red | Colour::Known) { "not ok" } else { "ok" };
    let Judged { group, name, title, .. } = judged;
    let title = title.replace('\\', "\\\\").replace('#', "\\#");
    let directive = match (colour, &judged.reason) {
        (Colour::Known, _) => " # TODO known".to_owned(),
        (Colour::Skipped, Some(reason)) => format!(" # SKIP {}", reason.replace('\n', " ")),
        _ => String::new(),
    };
    let _ = writeln!(out, "{ok} {number} - {group}/{name}: {title}{directive}");
    if let Some(change) = report.told_change(judged) {
        let _ = writeln!(out, "# {change}");
    }
    if matches!(judged.verdict, Verdict::Failed | Verdict::Warned | Verdict::Differs) {
        let _ = writeln!(out, "# {}", judged.verdict);
        for line in text::details(judged).lines() {
            let _ = writeln!(out, "# {line}");
        }
    }
}
