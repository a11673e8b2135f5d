//! The report in the Test Anything Protocol, version 14. A failed case is `not ok`; with a baseline, a
//! known failure is a TODO. A case that was not run is skipped.

use std::fmt::Write as _;

use super::{CheckReport, CiStatus, text};
use crate::result::{CaseResult, CaseStatus};

pub(super) fn report(report: &CheckReport) -> String {
    let mut out = format!("TAP version 14\n1..{}\n", report.results.len());
    for (index, case) in report.results.iter().enumerate() {
        line(report, index + 1, case, &mut out);
    }
    out
}

fn line(report: &CheckReport, number: usize, case: &CaseResult, out: &mut String) {
    let status = report.ci_status(case);
    let ok = if matches!(status, CiStatus::NotOk | CiStatus::Known) { "not ok" } else { "ok" };
    let CaseResult { group, name, title, .. } = case;
    let title = title.replace('\\', "\\\\").replace('#', "\\#");
    let directive = match (status, &case.reason) {
        (CiStatus::Known, _) => " # TODO known".to_owned(),
        (CiStatus::Skipped, Some(reason)) => format!(" # SKIP {}", reason.replace('\n', " ")),
        _ => String::new(),
    };
    let _ = writeln!(out, "{ok} {number} - {group}/{name}: {title}{directive}");
    if let Some(change) = report.change_text(case) {
        let _ = writeln!(out, "# {change}");
    }
    if matches!(case.status, CaseStatus::Failed | CaseStatus::Warned | CaseStatus::Differs) {
        let _ = writeln!(out, "# {}", case.status);
        for line in text::details(case).lines() {
            let _ = writeln!(out, "# {line}");
        }
    }
}
