//! Reports: the results as text, JSON, JUnit XML or TAP.

mod json;
mod junit;
mod tap;
mod text;

use crate::baseline::{BaselineChange, Severity};
use crate::result::{CaseResult, CaseStatus};

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum ReportFormat {
    /// Text for people
    Text,
    /// One JSON document
    Json,
    /// JUnit XML, for CI servers
    Junit,
    /// The Test Anything Protocol
    Tap,
}

/// The results of a run, ready to be printed.
pub struct CheckReport {
    /// Names and values of the heading, such as `endpoint`.
    pub facts: Vec<(&'static str, String)>,
    /// The duration of the run.
    pub seconds: f64,
    /// The results, in the order of the run.
    pub results: Vec<CaseResult>,
    /// The differences from the baseline, if there is one.
    pub changes: Option<Vec<BaselineChange>>,
    /// Lists every case, not only those with findings.
    pub is_verbose: bool,
}

/// The status of a case in JUnit and TAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CiStatus {
    Ok,
    NotOk,
    /// A failure that is in the baseline.
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

    /// Counts the results with this status.
    pub fn count(&self, status: CaseStatus) -> usize {
        self.results.iter().filter(|case| case.status == status).count()
    }

    /// Returns the difference of a case from the baseline, if there is one.
    fn change(&self, case: &CaseResult) -> Option<&BaselineChange> {
        self.changes.as_ref()?.iter().find(|change| change.name == case.name)
    }

    /// Returns the status for tools that know only pass and fail. With a baseline, a worse case fails.
    fn ci_status(&self, case: &CaseResult) -> CiStatus {
        let is_worse = self.change(case).is_some_and(BaselineChange::is_worse);
        match case.status {
            CaseStatus::NotRun => CiStatus::Skipped,
            _ if is_worse => CiStatus::NotOk,
            _ if Severity::of(case) < Severity::Failed => CiStatus::Ok,
            _ if self.changes.is_some() => CiStatus::Known,
            _ => CiStatus::NotOk,
        }
    }

    /// Describes the difference of a case from the baseline.
    fn change_text(&self, case: &CaseResult) -> Option<String> {
        let change = self.change(case)?;
        let which = if change.is_worse() { "worse" } else { "better" };
        Some(format!("{which} than the baseline: {} before, now {}", change.was, change.now()))
    }

    /// Returns the results by group, in the order of the run.
    fn groups(&self) -> impl Iterator<Item = &[CaseResult]> {
        self.results.chunk_by(|one, two| one.group == two.group)
    }
}
