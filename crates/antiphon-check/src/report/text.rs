//! The report for people: by group; each finding with its messages, the expected behavior, the reason
//! for the requirement, and the section of the specification.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::CheckReport;
use crate::baseline::BaselineChange;
use crate::result::{CaseResult, CaseStatus, DialogueLine, FailureKind};
use crate::spec_links;

pub(super) fn report(report: &CheckReport, is_coloured: bool) -> String {
    let page = TextStyle { is_coloured, is_verbose: report.is_verbose };
    let facts: Vec<String> =
        report.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let mut out = format!("{}\n\n", page.bold(&facts.join(" · ")));
    let is_not_run = |case: &CaseResult| case.status == CaseStatus::NotRun;
    let (unused, groups): (Vec<_>, Vec<_>) =
        report.groups().partition(|group| !report.is_verbose && group.iter().all(is_not_run));
    for group in groups {
        let before = out.lines().count();
        page.group(group, &mut out);
        if out.lines().count() > before + 1 {
            out.push('\n');
        }
    }
    let mut out = format!("{}\n", out.trim_end());
    page.not_run(report, &unused, &mut out);
    if let Some(changes) = &report.changes {
        page.changes(changes, &mut out);
    }
    page.summary(report, &mut out);
    out
}

/// Returns the details of one finding, without colours.
pub(super) fn details(case: &CaseResult) -> String {
    let page = TextStyle { is_coloured: false, is_verbose: false };
    let mut out = String::new();
    page.details(case, "", &mut out);
    out.trim_end().to_owned()
}

/// The style of a text report.
struct TextStyle {
    is_coloured: bool,
    is_verbose: bool,
}

impl TextStyle {
    fn paint(&self, style: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn status(&self, status: CaseStatus) -> String {
        let style = match status {
            CaseStatus::Passed => "32",
            CaseStatus::Failed => "1;31",
            CaseStatus::Warned => "33",
            CaseStatus::Differs => "36",
            CaseStatus::NotRun => "2",
        };
        self.paint(style, &status.to_string())
    }

    fn group(&self, group: &[CaseResult], out: &mut String) {
        let counts: Vec<String> = CaseStatus::ALL
            .into_iter()
            .filter_map(|status| {
                let count = group.iter().filter(|case| case.status == status).count();
                (count > 0).then(|| format!("{count} {}", self.status(status)))
            })
            .collect();
        let name = self.bold(&format!("{:<14}", group[0].group));
        let _ = writeln!(out, "{name} {}", counts.join(", "));
        let with = |wanted: CaseStatus| group.iter().filter(move |case| case.status == wanted);
        for case in with(CaseStatus::Failed).chain(with(CaseStatus::Warned)) {
            self.finding(case, out);
        }
        for case in with(CaseStatus::Differs) {
            self.choice(case, out);
        }
        if self.is_verbose {
            for case in with(CaseStatus::Passed).chain(with(CaseStatus::NotRun)) {
                self.plain(case, out);
            }
        }
    }

    /// Writes a case without a finding.
    fn plain(&self, case: &CaseResult, out: &mut String) {
        let reason = case.reason.as_deref().map(|reason| format!(" ({reason})"));
        let reason = self.dim(&reason.unwrap_or_default());
        let (status, CaseResult { name, title, .. }) = (self.status(case.status), case);
        let _ = writeln!(out, "  {status} {name}: {title}{reason}");
    }

    fn finding(&self, case: &CaseResult, out: &mut String) {
        let CaseResult { name, title, .. } = case;
        let _ = writeln!(out, "\n  {} {}: {title}", self.status(case.status), self.bold(name));
        self.details(case, "    ", out);
    }

    fn details(&self, case: &CaseResult, indent: &str, out: &mut String) {
        for line in &case.dialogue {
            let (mark, text) = match line {
                DialogueLine::Sent(text) => ("-->", text),
                DialogueLine::Received(text) => ("<--", text),
            };
            let _ = writeln!(out, "{indent}{} {}", self.dim(mark), visible(text));
        }
        for line in case.reason.as_deref().unwrap_or_default().lines() {
            let _ = writeln!(out, "{indent}    {}", visible(line));
        }
        if let Some(why) = &case.why {
            let _ = writeln!(out, "{indent}{} {why}", self.dim("why"));
        }
        let link =
            spec_links::link(&case.section).map(|link| format!(": {link}")).unwrap_or_default();
        let crash = if case.fault == Some(FailureKind::Crashed) {
            "a crash fails at every level; "
        } else {
            ""
        };
        let place = format!("{crash}{}, {}{link}", case.level, spec_links::name(&case.section));
        let _ = writeln!(out, "{indent}{} {place}", self.dim("see"));
    }

    /// Writes a case where the specification leaves a choice.
    fn choice(&self, case: &CaseResult, out: &mut String) {
        let CaseResult { name, title, .. } = case;
        let what = match case.dialogue.last() {
            Some(DialogueLine::Received(text)) => visible(text),
            _ => visible(case.reason.as_deref().and_then(|r| r.lines().next()).unwrap_or_default()),
        };
        let _ = writeln!(out, "  {} {name}: {title}", self.status(case.status));
        let _ = writeln!(out, "    {} {what}", self.dim("<--"));
        if self.is_verbose {
            self.details(case, "    ", out);
        }
    }

    /// Writes the reasons why cases were not run, and the groups of which no case was run.
    fn not_run(&self, report: &CheckReport, unused: &[&[CaseResult]], out: &mut String) {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for case in report.results.iter().filter(|case| case.status == CaseStatus::NotRun) {
            *reasons.entry(case.reason.as_deref().unwrap_or_default()).or_default() += 1;
        }
        if reasons.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n{}", self.bold("not run"));
        for (reason, count) in reasons {
            let _ = writeln!(out, "  {count:>4}  {}", visible(reason));
        }
        let names: Vec<&str> =
            unused.iter().filter_map(|group| Some(group.first()?.group.as_str())).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "        whole groups: {}", names.join(", "));
        }
    }

    fn changes(&self, changes: &[BaselineChange], out: &mut String) {
        let mut part = |title: &str, wanted: bool| {
            let some: Vec<_> = changes.iter().filter(|c| c.is_worse() == wanted).collect();
            if some.is_empty() {
                return;
            }
            let _ = writeln!(out, "\n{}", self.bold(title));
            for change in some {
                let style = if change.is_worse() { "1;31" } else { "32" };
                let (was, is) = (change.was, self.paint(style, &change.now()));
                let _ = writeln!(out, "  {}: {was} before, now {is}", change.name);
            }
        };
        part("worse than the baseline", true);
        part("better than the baseline (--update-baseline records it)", false);
    }

    fn summary(&self, report: &CheckReport, out: &mut String) {
        let counts: Vec<String> = CaseStatus::ALL
            .into_iter()
            .filter(|status| report.count(*status) > 0)
            .map(|status| format!("{} {}", report.count(status), self.status(status)))
            .collect();
        let total = match report.results.len() {
            1 => "1 case".to_owned(),
            count => format!("{count} cases"),
        };
        let _ = writeln!(out, "\n{total} in {:.1}s: {}", report.seconds, counts.join(", "));
    }
}

/// Returns text of a peer on one line, without control characters, which a terminal could obey.
fn visible(text: &str) -> String {
    let escaped = |c: char| match c {
        '\n' | '\t' | '\0'..' ' | '\u{7f}'..='\u{9f}' => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::RequirementLevel;

    fn case(group: &str, name: &str, status: CaseStatus) -> CaseResult {
        let reason = (status == CaseStatus::NotRun).then(|| "the server has none".to_owned());
        CaseResult {
            group: group.to_owned(),
            name: name.to_owned(),
            title: "title".to_owned(),
            level: RequirementLevel::Must,
            section: "4".to_owned(),
            why: None,
            status,
            reason,
            fault: None,
            dialogue: Vec::new(),
        }
    }

    fn page(is_verbose: bool) -> String {
        let results = vec![
            case("one", "a", CaseStatus::Passed),
            case("one", "b", CaseStatus::NotRun),
            case("two", "c", CaseStatus::NotRun),
            case("three", "d", CaseStatus::NotRun),
        ];
        let facts = vec![("endpoint", "x".to_owned())];
        report(&CheckReport { facts, seconds: 0.0, results, changes: None, is_verbose }, false)
    }

    #[test]
    fn groups_that_are_wholly_not_run_share_a_line() {
        let expected = "\
endpoint: x

one            1 passed, 1 not-run

not run
     3  the server has none
        whole groups: two, three

4 cases in 0.0s: 1 passed, 3 not-run
";
        assert_eq!(page(false), expected);
    }

    #[test]
    fn a_verbose_report_has_every_group() {
        let page = page(true);
        assert!(page.contains("two            1 not-run\n  not-run c: title"), "{page}");
        assert!(!page.contains("whole groups"), "{page}");
    }
}
