//! The report as JUnit XML: a group is a suite, and a failed case fails. With a baseline, a worse case
//! fails and a known failure is skipped.

use std::fmt::Write as _;

use super::{CheckReport, CiStatus, text};
use crate::result::{CaseResult, CaseStatus};

pub(super) fn report(report: &CheckReport) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"antiphon\" {} time=\"{:.3}\">",
        counts(report, &report.results),
        report.seconds
    );
    for group in report.groups() {
        let name = escaped(&group[0].group);
        let _ = writeln!(out, "  <testsuite name=\"{name}\" {}>", counts(report, group));
        for case in group {
            write_case(report, case, &mut out);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts(report: &CheckReport, cases: &[CaseResult]) -> String {
    let count = |wanted: &[CiStatus]| {
        cases.iter().filter(|case| wanted.contains(&report.ci_status(case))).count()
    };
    let (failures, skipped) =
        (count(&[CiStatus::NotOk]), count(&[CiStatus::Known, CiStatus::Skipped]));
    format!("tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\"", cases.len())
}

fn write_case(report: &CheckReport, case: &CaseResult, out: &mut String) {
    let (group, name) = (escaped(&case.group), escaped(&case.name));
    let _ = write!(out, "    <testcase classname=\"{group}\" name=\"{name}\"");
    let change = report.change_text(case).map(|change| escaped(&change));
    let title = escaped(&case.title);
    let details = || escaped(&text::details(case));
    let _ = match report.ci_status(case) {
        CiStatus::Skipped => {
            let reason = escaped(case.reason.as_deref().unwrap_or_default());
            writeln!(out, "><skipped message=\"{reason}\"/></testcase>")
        }
        CiStatus::Known => writeln!(
            out,
            "><skipped message=\"known: {title}\"/><system-out>{}</system-out></testcase>",
            details()
        ),
        CiStatus::NotOk => {
            let change = change.map(|change| format!("{change}: ")).unwrap_or_default();
            let message = format!("{change}{title}");
            writeln!(out, "><failure message=\"{message}\">{}</failure></testcase>", details())
        }
        CiStatus::Ok => {
            let mut line: Vec<String> = change.into_iter().collect();
            if case.status != CaseStatus::Passed {
                line.push(format!("{}: {}", case.status, details()));
            }
            match &line[..] {
                [] => writeln!(out, "/>"),
                line => {
                    let line = line.join("&#10;");
                    writeln!(out, "><system-out>{line}</system-out></testcase>")
                }
            }
        }
    };
}

/// Escapes text for XML. A character that XML 1.0 cannot hold becomes its code point.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_of_a_peer_cannot_break_the_document() {
        let text = "<a b=\"c\">&\u{0}\u{1b}\n\u{FFFF}é";
        let safe = "&lt;a b=&quot;c&quot;&gt;&amp;\\u{0}\\u{1b}&#10;\\u{ffff}é";
        assert_eq!(super::escaped(text), safe);
    }
}
