//! The report in the Test Anything Protocol, version 14. Only a failure is `not ok`; what was not run
//! is skipped.

use std::fmt::Write as _;

use super::{Report, text};
use crate::check::verdict::{Judged, Verdict};

pub(super) fn report(report: &Report) -> String {
    let mut out = format!("TAP version 14\n1..{}\n", report.judged.len());
    for (index, judged) in report.judged.iter().enumerate() {
        line(index + 1, judged, &mut out);
    }
    out
}

fn line(number: usize, judged: &Judged, out: &mut String) {
    let ok = if judged.verdict == Verdict::Failed { "not ok" } else { "ok" };
    let Judged { group, name, title, .. } = judged;
    let title = title.replace('\\', "\\\\").replace('#', "\\#");
    let skip = match (judged.verdict, &judged.reason) {
        (Verdict::NotRun, Some(reason)) => format!(" # SKIP {}", reason.replace('\n', " ")),
        _ => String::new(),
    };
    let _ = writeln!(out, "{ok} {number} - {group}/{name}: {title}{skip}");
    if matches!(judged.verdict, Verdict::Failed | Verdict::Warned | Verdict::Differs) {
        let _ = writeln!(out, "# {}", judged.verdict);
        for line in text::details(judged).lines() {
            let _ = writeln!(out, "# {line}");
        }
    }
}
