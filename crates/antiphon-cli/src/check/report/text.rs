//! The report for people: by group, and of each finding what was sent, what came, where the
//! specification says so, and why it matters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Report;
use crate::check::baseline::Change;
use crate::check::spec;
use crate::check::verdict::{Fault, Judged, Said, Verdict};
use crate::output;

pub(super) fn report(report: &Report, is_coloured: bool) -> String {
    let page = Page { is_coloured, is_verbose: report.is_verbose };
    let facts: Vec<&str> = report.facts.iter().map(|(_, value)| &**value).collect();
    let mut out = format!("{}\n\n", page.bold(&facts.join(" · ")));
    for group in report.groups() {
        let before = out.lines().count();
        page.group(group, &mut out);
        if out.lines().count() > before + 1 {
            out.push('\n');
        }
    }
    let mut out = format!("{}\n", out.trim_end());
    page.not_run(report, &mut out);
    if let Some(changes) = &report.changes {
        page.changes(changes, &mut out);
    }
    page.summary(report, &mut out);
    out
}

/// What is told of one finding, without colours.
pub(super) fn details(judged: &Judged) -> String {
    let page = Page { is_coloured: false, is_verbose: false };
    let mut out = String::new();
    page.details(judged, "", &mut out);
    out.trim_end().to_owned()
}

/// How it looks.
struct Page {
    is_coloured: bool,
    is_verbose: bool,
}

impl Page {
    fn paint(&self, style: &str, text: &str) -> String {
        output::paint(self.is_coloured, style, text)
    }

    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn verdict(&self, verdict: Verdict) -> String {
        let style = match verdict {
            Verdict::Passed => "32",
            Verdict::Failed => "1;31",
            Verdict::Warned => "33",
            Verdict::Differs => "36",
            Verdict::NotRun => "2",
        };
        self.paint(style, &verdict.to_string())
    }

    fn group(&self, group: &[Judged], out: &mut String) {
        let counts: Vec<String> = Verdict::ALL
            .into_iter()
            .filter_map(|verdict| {
                let count = group.iter().filter(|judged| judged.verdict == verdict).count();
                (count > 0).then(|| format!("{count} {}", self.verdict(verdict)))
            })
            .collect();
        let name = self.bold(&format!("{:<14}", group[0].group));
        let _ = writeln!(out, "{name} {}", counts.join(", "));
        let with = |wanted: Verdict| group.iter().filter(move |judged| judged.verdict == wanted);
        for judged in with(Verdict::Failed).chain(with(Verdict::Warned)) {
            self.finding(judged, out);
        }
        for judged in with(Verdict::Differs) {
            self.choice(judged, out);
        }
        if self.is_verbose {
            for judged in with(Verdict::Passed).chain(with(Verdict::NotRun)) {
                self.plain(judged, out);
            }
        }
    }

    /// A case with nothing against it.
    fn plain(&self, judged: &Judged, out: &mut String) {
        let reason = judged.reason.as_deref().map(|reason| format!(" ({reason})"));
        let reason = self.dim(&reason.unwrap_or_default());
        let (verdict, Judged { name, title, .. }) = (self.verdict(judged.verdict), judged);
        let _ = writeln!(out, "  {verdict} {name}: {title}{reason}");
    }

    fn finding(&self, judged: &Judged, out: &mut String) {
        let Judged { name, title, .. } = judged;
        let _ = writeln!(out, "\n  {} {}: {title}", self.verdict(judged.verdict), self.bold(name));
        self.details(judged, "    ", out);
    }

    fn details(&self, judged: &Judged, indent: &str, out: &mut String) {
        for said in &judged.dialogue {
            let (mark, text) = match said {
                Said::Sent(text) => ("-->", text),
                Said::Came(text) => ("<--", text),
            };
            let _ = writeln!(out, "{indent}{} {}", self.dim(mark), visible(text));
        }
        for line in judged.reason.as_deref().unwrap_or_default().lines() {
            let _ = writeln!(out, "{indent}    {}", visible(line));
        }
        if let Some(why) = &judged.why {
            let _ = writeln!(out, "{indent}{} {why}", self.dim("why"));
        }
        let link = spec::link(&judged.section).map(|link| format!(": {link}")).unwrap_or_default();
        let crash =
            if judged.fault == Some(Fault::Crashed) { "a crash, whatever is sent; " } else { "" };
        let place = format!("{crash}{}, {}{link}", judged.level, spec::name(&judged.section));
        let _ = writeln!(out, "{indent}{} {place}", self.dim("see"));
    }

    /// What it does where it is free to.
    fn choice(&self, judged: &Judged, out: &mut String) {
        let Judged { name, title, .. } = judged;
        let what = match judged.dialogue.last() {
            Some(Said::Came(text)) => visible(text),
            _ => {
                visible(judged.reason.as_deref().and_then(|r| r.lines().next()).unwrap_or_default())
            }
        };
        let _ = writeln!(out, "  {} {name}: {title}", self.verdict(judged.verdict));
        let _ = writeln!(out, "    {} {what}", self.dim("<--"));
        if self.is_verbose {
            self.details(judged, "    ", out);
        }
    }

    fn not_run(&self, report: &Report, out: &mut String) {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for judged in report.judged.iter().filter(|judged| judged.verdict == Verdict::NotRun) {
            *reasons.entry(judged.reason.as_deref().unwrap_or_default()).or_default() += 1;
        }
        if reasons.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n{}", self.bold("not run"));
        for (reason, count) in reasons {
            let _ = writeln!(out, "  {count:>4}  {}", visible(reason));
        }
    }

    fn changes(&self, changes: &[Change], out: &mut String) {
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
        part("better than the baseline (--update-baseline takes note)", false);
    }

    fn summary(&self, report: &Report, out: &mut String) {
        let counts: Vec<String> = Verdict::ALL
            .into_iter()
            .filter(|verdict| report.count(*verdict) > 0)
            .map(|verdict| format!("{} {}", report.count(verdict), self.verdict(verdict)))
            .collect();
        let total = report.judged.len();
        let _ = writeln!(out, "\n{total} cases in {:.1}s: {}", report.seconds, counts.join(", "));
    }
}

/// Text of a peer on one line, without what commands a terminal.
fn visible(text: &str) -> String {
    output::visible(text).replace('\n', "\\n").replace('\t', "\\t")
}
