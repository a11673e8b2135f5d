//! The report as JUnit's XML: a group is a suite, a failure fails, and all else is told beside it.

use std::fmt::Write as _;

use super::{Report, text};
use crate::check::verdict::{Judged, Verdict};

pub(super) fn report(report: &Report) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (tests, failures) = (report.judged.len(), report.count(Verdict::Failed));
    let skipped = report.count(Verdict::NotRun);
    let _ = writeln!(
        out,
        "<testsuites name=\"antiphon\" tests=\"{tests}\" failures=\"{failures}\" \
         skipped=\"{skipped}\" time=\"{:.3}\">",
        report.seconds
    );
    for group in report.groups() {
        suite(group, &mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(group: &[Judged], out: &mut String) {
    let count = |verdict| group.iter().filter(|judged| judged.verdict == verdict).count();
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
        escaped(&group[0].group),
        group.len(),
        count(Verdict::Failed),
        count(Verdict::NotRun)
    );
    for judged in group {
        case(judged, out);
    }
    out.push_str("  </testsuite>\n");
}

fn case(judged: &Judged, out: &mut String) {
    let (group, name) = (escaped(&judged.group), escaped(&judged.name));
    let _ = write!(out, "    <testcase classname=\"{group}\" name=\"{name}\"");
    let reason = escaped(judged.reason.as_deref().unwrap_or_default());
    let told = || escaped(&text::details(judged));
    let _ = match judged.verdict {
        Verdict::Passed => writeln!(out, "/>"),
        Verdict::NotRun => writeln!(out, "><skipped message=\"{reason}\"/></testcase>"),
        Verdict::Failed => {
            let title = escaped(&judged.title);
            writeln!(out, "><failure message=\"{title}\">{}</failure></testcase>", told())
        }
        Verdict::Warned | Verdict::Differs => {
            let verdict = judged.verdict;
            writeln!(out, "><system-out>{verdict}: {}</system-out></testcase>", told())
        }
    };
}

/// Text inside XML. What XML 1.0 has no way to write is shown as its code point.
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
    fn nothing_that_came_can_break_the_document() {
        let text = "<a b=\"c\">&\u{0}\u{1b}\n\u{FFFF}é";
        let safe = "&lt;a b=&quot;c&quot;&gt;&amp;\\u{0}\\u{1b}&#10;\\u{ffff}é";
        assert_eq!(super::escaped(text), safe);
    }
}
