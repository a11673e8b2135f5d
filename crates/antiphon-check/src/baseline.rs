//! What was known before: which cases failed or warned. It is a file for people to keep with their
//! code, one case a line.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;

use crate::error::CheckError;
use crate::result::{CaseResult, CaseStatus, FailureKind};
use crate::server::without_mark;

/// The findings of an earlier run, by the names of their cases.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Baseline(BTreeMap<String, Severity>);

/// How bad it is, the worst last. Who was wrong and now dies has got worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Fine,
    Warned,
    Failed,
    Crashed,
}

impl Severity {
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

/// A case that is not what it was.
#[derive(Debug)]
pub struct BaselineChange {
    pub(crate) name: String,
    pub(crate) was: Severity,
    pub(crate) is: Severity,
    status: CaseStatus,
}

impl BaselineChange {
    /// What it is now, in a word.
    pub fn now(&self) -> String {
        match self.is {
            Severity::Fine => self.status.to_string(),
            grade => grade.to_string(),
        }
    }

    pub fn is_worse(&self) -> bool {
        self.is > self.was
    }
}

impl Baseline {
    pub fn read(path: &Path) -> Result<Self, CheckError> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            CheckError::usage(format!("{name} cannot be read: {error}"))
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

    /// Forgets the names that no case has, and gives them.
    pub fn remove_unknown(&mut self, is_case: impl Fn(&str) -> bool) -> Vec<String> {
        let mut strangers: Vec<String> = self.0.keys().cloned().collect();
        strangers.retain(|name| !is_case(name));
        self.0.retain(|name, _| is_case(name));
        strangers
    }

    /// Writes what was found now. A case that was not run keeps what was known of it.
    pub fn write(&self, path: &Path, outcome: &[CaseResult]) -> Result<(), CheckError> {
        let mut known = self.0.clone();
        for outcome in outcome.iter().filter(|outcome| outcome.status != CaseStatus::NotRun) {
            match Severity::of(outcome) {
                Severity::Fine => known.remove(&outcome.name),
                grade => known.insert(outcome.name.clone(), grade),
            };
        }
        let mut text =
            String::from("# Known findings of `antiphon check`, as --baseline reads them.\n");
        for (name, grade) in known {
            let _ = writeln!(text, "{grade} {name}");
        }
        std::fs::write(path, text).map_err(|error| {
            CheckError::usage(format!("{} cannot be written: {error}", path.display()))
        })
    }

    /// What is not as it was, in the order of the run.
    pub fn compare(&self, outcome: &[CaseResult]) -> Vec<BaselineChange> {
        let run = outcome.iter().filter(|outcome| outcome.status != CaseStatus::NotRun);
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
    fn worse_and_better_are_told_apart() {
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
        let told: Vec<_> = changes.iter().map(|c| (&*c.name, c.is_worse())).collect();
        assert_eq!(told, [("b", true), ("c", false), ("e", true)]);
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
    fn names_that_no_case_has_are_forgotten() {
        let mut known = Baseline::parse("failed a\nwarned gone\n").unwrap();
        assert_eq!(known.remove_unknown(|name| name == "a"), ["gone"]);
        assert_eq!(known, Baseline::parse("failed a\n").unwrap());
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        let known = Baseline::parse("\u{feff}failed a\n").unwrap();
        assert_eq!(known, Baseline::parse("failed a\n").unwrap());
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert!(Baseline::parse("failed a\noops").unwrap_err().starts_with("line 2"));
        assert!(Baseline::parse("passed a").is_err());
    }

    #[test]
    fn what_was_not_run_stays_known() {
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
