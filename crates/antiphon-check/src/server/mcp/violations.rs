//! The findings of the monitor: the first violation of each rule in each era.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::result::CaseStatus;
use crate::result::{CaseResult, DialogueLine, FailureKind, Finding};
use crate::server::case_outcome::{result_of, result_of_finding};
use crate::transcript::{McpEra, McpRule, TranscriptCase};

/// The violations of a run.
#[derive(Default)]
pub(crate) struct Violations {
    found: Mutex<Vec<Violation>>,
    /// The ids of all sessions of the run.
    sessions: Mutex<HashSet<String>>,
}

struct Violation {
    rule: McpRule,
    era: McpEra,
    what: String,
    message: Vec<u8>,
}

impl Violations {
    /// Records the id of a new session. Returns false if another session of the run has it.
    pub(super) fn is_new_session(&self, session: &str) -> bool {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(session.to_owned())
    }

    /// Records a violation, unless the era has one of this rule.
    pub(super) fn add(&self, rule: McpRule, era: McpEra, what: impl Into<String>, message: &[u8]) {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().any(|one| (one.rule, one.era) == (rule, era)) {
            return;
        }
        all.push(Violation { rule, era, what: what.into(), message: message.to_vec() });
    }

    /// Returns the result of a case that watches a rule.
    pub(super) fn judge(&self, case: &TranscriptCase, rule: McpRule) -> CaseResult {
        let all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |era| case.facts.era.is_none_or(|meant| meant == era);
        match all.iter().find(|one| one.rule == rule && is_meant(one.era)) {
            Some(Violation { what, message, .. }) => {
                let dialogue = match &message[..] {
                    [] => Vec::new(),
                    message => vec![DialogueLine::received(message)],
                };
                result_of_finding(case, Finding::new(FailureKind::Wrong, what), dialogue)
            }
            None => result_of(case, CaseStatus::Passed, None),
        }
    }
}
