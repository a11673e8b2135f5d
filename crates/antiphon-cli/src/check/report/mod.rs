//! What was found, as people and programs read it. It goes to stdout, whole and at the end.

mod json;
mod junit;
mod tap;
mod text;

use clap::ValueEnum;

use super::baseline::{Change, Grade};
use super::verdict::{Judged, Verdict};
use crate::exit::Failure;
use crate::output;

/// How to print the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// JUnit's XML, as CI servers read it
    Junit,
    /// The Test Anything Protocol
    Tap,
}

/// All that was found.
pub(crate) struct Report {
    /// Of what: `endpoint` and so on, in the order in which they are told.
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) seconds: f64,
    pub(crate) judged: Vec<Judged>,
    /// Compared with what was known, if there is a baseline.
    pub(crate) changes: Option<Vec<Change>>,
    /// Tell of every case, not only of those with findings.
    pub(crate) is_verbose: bool,
}

/// What JUnit and TAP make of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Green,
    Red,
    /// A failure that the baseline forgives.
    Known,
    Skipped,
}

impl Report {
    pub(crate) fn print(&self, format: Format) -> Result<(), Failure> {
        let text = match format {
            Format::Text => text::report(self, output::is_coloured()),
            Format::Json => json::report(self),
            Format::Junit => junit::report(self),
            Format::Tap => tap::report(self),
        };
        output::line(text.trim_end())
    }

    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.judged.iter().filter(|judged| judged.verdict == verdict).count()
    }

    /// How it compares with the baseline, if there is one and it is not as it was.
    fn change(&self, judged: &Judged) -> Option<&Change> {
        self.changes.as_ref()?.iter().find(|change| change.name == judged.name)
    }

    /// What it is to those who only see red and green: with a baseline red is what is worse.
    fn colour(&self, judged: &Judged) -> Colour {
        let is_worse = self.change(judged).is_some_and(Change::is_worse);
        match judged.verdict {
            Verdict::NotRun => Colour::Skipped,
            _ if is_worse => Colour::Red,
            _ if Grade::of(judged) < Grade::Failed => Colour::Green,
            _ if self.changes.is_some() => Colour::Known,
            _ => Colour::Red,
        }
    }

    /// The change in words, as machines' formats carry it.
    fn told_change(&self, judged: &Judged) -> Option<String> {
        let change = self.change(judged)?;
        let which = if change.is_worse() { "worse" } else { "better" };
        Some(format!("{which} than the baseline: {} before, now {}", change.was, change.now()))
    }

    /// The groups with their cases, in the order in which they were run.
    fn groups(&self) -> impl Iterator<Item = &[Judged]> {
        self.judged.chunk_by(|one, two| one.group == two.group)
    }
}
