//! What was found, as people and programs read it. It goes to stdout, whole and at the end.

mod json;
mod junit;
mod tap;
mod text;

use crate::baseline::{BaselineChange, Severity};
use crate::result::{CaseResult, CaseStatus};

/// How to print the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ReportFormat {
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
pub struct CheckReport {
    /// Of what: `endpoint` and so on, in the order in which they are told.
    pub facts: Vec<(&'static str, String)>,
    pub seconds: f64,
    pub results: Vec<CaseResult>,
    /// Compared with what was known, if there is a baseline.
    pub changes: Option<Vec<BaselineChange>>,
    /// Tell of every case, not only of those with findings.
    pub is_verbose: bool,
}

/// What JUnit and TAP make of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CiStatus {
    Green,
    Red,
    /// A failure that the baseline forgives.
    Known,
    Skipped,
}

impl CheckReport {
    /// Returns the report as a text without a trailing newline.
    pub fn render(&self, format: ReportFormat, is_coloured: bool) -> String {
        let text = match format {
            ReportFormat::Text => text::report(self, is_coloured),
            ReportFormat::Json => json::report(self),
            ReportFormat::Junit => junit::report(self),
            ReportFormat::Tap => tap::report(self),
        };
        text.trim_end().to_owned()
    }

    pub fn count(&self, status: CaseStatus) -> usize {
        self.results.iter().filter(|outcome| outcome.status == status).count()
    }

    /// How it compares with the baseline, if there is one and it is not as it was.
    fn change(&self, outcome: &CaseResult) -> Option<&BaselineChange> {
        self.changes.as_ref()?.iter().find(|change| change.name == outcome.name)
    }

    /// What it is to those who only see red and green: with a baseline red is what is worse.
    fn colour(&self, outcome: &CaseResult) -> CiStatus {
        let is_worse = self.change(outcome).is_some_and(BaselineChange::is_worse);
        match outcome.status {
            CaseStatus::NotRun => CiStatus::Skipped,
            _ if is_worse => CiStatus::Red,
            _ if Severity::of(outcome) < Severity::Failed => CiStatus::Green,
            _ if self.changes.is_some() => CiStatus::Known,
            _ => CiStatus::Red,
        }
    }

    /// The change in words, as machines' formats carry it.
    fn told_change(&self, outcome: &CaseResult) -> Option<String> {
        let change = self.change(outcome)?;
        let which = if change.is_worse() { "worse" } else { "better" };
        Some(format!("{which} than the baseline: {} before, now {}", change.was, change.now()))
    }

    /// The groups with their cases, in the order in which they were run.
    fn groups(&self) -> impl Iterator<Item = &[CaseResult]> {
        self.results.chunk_by(|one, two| one.group == two.group)
    }
}
