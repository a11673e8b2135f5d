//! What was found, as people and programs read it. It goes to stdout, whole and at the end.

mod json;
mod junit;
mod tap;
mod text;

use clap::ValueEnum;

use super::baseline::Change;
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

    /// The groups with their cases, in the order in which they were run.
    fn groups(&self) -> impl Iterator<Item = &[Judged]> {
        self.judged.chunk_by(|one, two| one.group == two.group)
    }
}
