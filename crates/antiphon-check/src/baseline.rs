//! Baselines: the known failures and warnings of a peer.
//!
//! A baseline is a text file, kept beside the code, with one case per line.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;

use crate::error::CheckError;
use crate::result::{CaseResult, CaseStatus, FailureKind};
use crate::server::without_mark;

/// The known findings of an earlier run, by the names of the cases.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Baseline(BTreeMap<String, Severity>);

/// The severity of a result, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// No finding.
    Fine,
    /// A SHOULD is not met.
    Warned,
    /// A MUST is not met.
    Failed,
    /// The peer crashed.
    Crashed,
}

impl Severity {
    /// Returns the severity of a result.
    pub fn of(outcome: &CaseResult) -> Self {
        match outcome.status {
            CaseStatus::Failed if outcome.fault == Some(FailureKind::Crashed) => Self::Crashed,
            CaseStatus::Failed => Self::Failed,
            CaseStatus::Warned => Self::Warned,
            CaseStatus::Passed | CaseStatus::Differs | CaseStatus::NotRun => Self::Fine,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fine => "passed",
            Self::Warned => "warned",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
        })
    }
}

/// A case whose severity differs from the baseline.
#[derive(Debug)]
pub struct BaselineChange {
    /// The name of the case.
    pub name: String,
    /// The severity in the baseline.
    pub was: Severity,
    /// The severity in this run.
    pub is: Severity,
    status: CaseStatus,
}

impl BaselineChange {
    /// Returns the result of this run in one word.
    pub fn now(&self) -> String {
        match self.is {
            Severity::Fine => self.status.to_string(),
            grade => grade.to_string(),
        }
    }

    /// Reports whether this run is worse than the baseline.
    pub fn is_worse(&self) -> bool {
        self.is > self.was
    }
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line is malformed.
    pub fn read(path: &Path) -> Result<Self, CheckError> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            CheckError::usage(format!("cannot read {name}: {error}"))
                .hint("--update-baseline writes it")
        })?;
        Self::parse(&text).map_err(|fault| CheckError::usage(format!("{name}: {fault}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut known = BTreeMap::new();
        for (index, line) in without_mark(text).lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault = || {
                let remedy = "write `failed NAME`, `warned NAME` or `crashed NAME`";
                format!("line {}: {remedy}", index + 1)
            };
            let (grade, name) = line.split_once(' ').ok_or_else(fault)?;
            let grades = [Severity::Warned, Severity::Failed, Severity::Crashed];
            let grade = grades.into_iter().find(|known| known.to_string() == grade);
            known.insert(name.trim().to_owned(), grade.ok_or_else(fault)?);
        }
        Ok(Self(known))
    }

    /// Removes the names that belong to no case, and returns them.
    pub fn remove_unknown(&mut self, is_case: impl Fn(&str) -> bool) -> Vec<String> {
        let mut unknown: Vec<String> = self.0.keys().cloned().collect();
        unknown.retain(|name| !is_case(name));
        self.0.retain(|name, _| is_case(name));
        unknown
    }

    /// Writes the results of this run. A case that was not run keeps its entry.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, path: &Path, results: &[CaseResult]) -> Result<(), CheckError> {
        let mut known = self.0.clone();
        for outcome in results.iter().filter(|outcome| outcome.status != CaseStatus::NotRun) {
            match Severity::of(outcome) {
                Severity::Fine => known.remove(&outcome.name),
                grade => known.insert(outcome.name.clone(), grade),
            };
        }
        let mut text =
            String::from("# Known findings of `antiphon check`. --baseline reads this file.\n");
        for (name, grade) in known {
            let _ = writeln!(text, "{grade} {name}");
        }
        std::fs::write(path, text)
            .map_err(|error| CheckError::usage(format!("cannot write {}: {error}", path.display())))
    }

    /// Returns the cases whose severity differs from the baseline, in the order of the run.
    pub fn compare(&self, results: &[CaseResult]) -> Vec<BaselineChange> {
        let run = results.iter().filter(|outcome| outcome.status != CaseStatus::NotRun);
        let changes = run.map(|outcome| BaselineChange {
            name: outcome.name.clone(),
            was: self.0.get(&outcome.name).copied().unwrap_or(Severity::Fine),
            is: Severity::of(outcome),
            status: outcome.status,
        });
        changes.filter(|change| change.was != change.is).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::RequirementLevel;

    fn outcome(name: &str, status: CaseStatus) -> CaseResult {
        CaseResult {
            group: "g".into(),
            name: name.into(),
            title: "t".into(),
            level: RequirementLevel::Must,
            section: "4".into(),
            why: None,
            status,
            reason: None,
            fault: None,
            dialogue: Vec::new(),
        }
    }

    #[test]
    fn worse_and_better_differ() {
        let known = Baseline::parse("# known\n\nfailed a\nwarned b\nfailed c\nwarned d\n").unwrap();
        let now = [
            outcome("a", CaseStatus::Failed),
            outcome("b", CaseStatus::Failed),
            outcome("c", CaseStatus::Passed),
            outcome("d", CaseStatus::NotRun),
            outcome("e", CaseStatus::Warned),
            outcome("f", CaseStatus::Differs),
        ];
        let changes = known.compare(&now);
        let found: Vec<_> = changes.iter().map(|c| (&*c.name, c.is_worse())).collect();
        assert_eq!(found, [("b", true), ("c", false), ("e", true)]);
    }

    #[test]
    fn a_known_failure_that_becomes_a_crash_is_worse() {
        let mut died = outcome("a", CaseStatus::Failed);
        died.fault = Some(FailureKind::Crashed);
        let changes = Baseline::parse("failed a\n").unwrap().compare(&[died.clone()]);
        assert!(changes[0].is_worse(), "{changes:?}");
        assert!(Baseline::parse("crashed a\n").unwrap().compare(&[died]).is_empty());
        let wrong = [outcome("a", CaseStatus::Failed)];
        assert!(!Baseline::parse("crashed a\n").unwrap().compare(&wrong)[0].is_worse());
    }

    #[test]
    fn names_of_no_case_are_removed() {
        let mut known = Baseline::parse("failed a\nwarned gone\n").unwrap();
        assert_eq!(known.remove_unknown(|name| name == "a"), ["gone"]);
        assert_eq!(known, Baseline::parse("failed a\n").unwrap());
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let known = Baseline::parse("\u{feff}failed a\n").unwrap();
        assert_eq!(known, Baseline::parse("failed a\n").unwrap());
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert!(Baseline::parse("failed a\noops").unwrap_err().starts_with("line 2"));
        assert!(Baseline::parse("passed a").is_err());
    }

    #[test]
    fn a_case_that_was_not_run_keeps_its_entry() {
        let path = std::env::temp_dir().join(format!("antiphon-baseline-{}", std::process::id()));
        let known = Baseline::parse("failed a\nfailed b\n").unwrap();
        let now = [
            outcome("a", CaseStatus::NotRun),
            outcome("b", CaseStatus::Passed),
            outcome("c", CaseStatus::Warned),
        ];
        known.write(&path, &now).unwrap();
        let again = Baseline::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(again, Baseline::parse("failed a\nwarned c\n").unwrap());
    }
}
