//! The choice of cases: `--only` and `--skip`.

use crate::error::CheckError;
use crate::transcript::RequirementLevel;

/// Patterns that choose cases.
///
/// A pattern is a group, a case, the beginning of a case's name with `*`, or a requirement level.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Runs the cases that match one of these. An empty list matches every case.
    pub only: Vec<String>,
    /// Leaves out the cases that match one of these.
    pub skip: Vec<String>,
}

/// The description of one case.
#[derive(Clone, Copy, Debug)]
pub struct CaseSummary<'a> {
    /// The group: the name of its transcript or of its scenarios.
    pub group: &'a str,
    /// The stable, unique name.
    pub name: &'a str,
    /// The requirement level.
    pub level: RequirementLevel,
    /// The required behaviour, in one sentence.
    pub title: &'a str,
}

impl Selection {
    /// Reports whether it chooses every case.
    pub fn is_everything(&self) -> bool {
        self.only.is_empty() && self.skip.is_empty()
    }

    /// Keeps the chosen cases. A pattern without a match is an error.
    pub(crate) fn apply<T>(
        &self,
        cases: &mut Vec<T>,
        summary: impl Fn(&T) -> CaseSummary<'_>,
    ) -> Result<(), CheckError> {
        let matches = |pattern: &String, case: &T| summary(case).matches(pattern);
        for pattern in self.only.iter().chain(&self.skip) {
            if !cases.iter().any(|case| matches(pattern, case)) {
                return Err(CheckError::usage(format!("no case matches `{pattern}`")).hint(
                    "--list shows the cases; use a group, a case, a prefix such as id-*, MUST, SHOULD or choice",
                ));
            }
        }
        cases.retain(|case| {
            (self.only.is_empty() || self.only.iter().any(|pattern| matches(pattern, case)))
                && !self.skip.iter().any(|pattern| matches(pattern, case))
        });
        if cases.is_empty() {
            return Err(CheckError::usage("--only and --skip leave no case"));
        }
        Ok(())
    }
}

impl CaseSummary<'_> {
    fn matches(&self, pattern: &str) -> bool {
        let is_name = match pattern.strip_suffix('*') {
            Some(start) => self.name.starts_with(start),
            None => self.name == pattern,
        };
        is_name || self.group == pattern || self.level.to_string() == pattern
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_groups_names_and_levels() {
        let level = RequirementLevel::Should;
        let case = CaseSummary { group: "ids", name: "id-null", level, title: "" };
        for pattern in ["ids", "id-null", "id-*", "*", "SHOULD"] {
            assert!(case.matches(pattern), "{pattern}");
        }
        for pattern in ["id", "ids-*", "MUST", "null"] {
            assert!(!case.matches(pattern), "{pattern}");
        }
    }
}
