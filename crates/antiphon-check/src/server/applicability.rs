//! Decides whether a case applies to the server: its transport, its profile and its methods.
//!
//! The answer never depends on the course of the run.

use super::suite_run::SuiteRun;
use crate::transcript::json::Json;
use crate::transcript::{CaseStep, TranscriptCase, WireKind};

impl SuiteRun {
    /// Returns the reason why this case does not apply.
    pub(super) fn inapplicable_reason(&self, case: &TranscriptCase) -> Option<String> {
        let (facts, profile) = (&case.facts, self.server_access.profile);
        if let Some(reason) = self.transport_obstacle(case) {
            return Some(reason);
        }
        if !facts.profiles.is_empty() && !facts.profiles.contains(&profile) {
            let names: Vec<String> = facts.profiles.iter().map(ToString::to_string).collect();
            return Some(format!("applies only to --profile {}", names.join(" and ")));
        }
        if facts.unless.contains(&profile) {
            return Some(format!("the profile {profile} deviates here on purpose"));
        }
        if facts.is_hostile && !self.is_hostile {
            return Some("is an attack; --hostile runs it".to_owned());
        }
        if self.wire == WireKind::Values && !case.steps.iter().all(is_value) {
            return Some("the framing `values` cannot carry invalid JSON".to_owned());
        }
        let crowds = |step: &CaseStep| matches!(step, CaseStep::Connect(_));
        if self.is_child() && case.steps.iter().any(crowds) {
            return Some("requires a server that accepts many connections".to_owned());
        }
        self.methods.lacks(case).map(|lacking| format!("requires {lacking}"))
    }

    /// Returns the reason why the transport cannot express the case.
    pub(super) fn transport_obstacle(&self, case: &TranscriptCase) -> Option<String> {
        if case.facts.fits(self.wire) {
            return None;
        }
        Some(match &case.facts.only[..] {
            [] => "cannot be expressed over this transport".to_owned(),
            only => {
                let names: Vec<String> = only.iter().map(ToString::to_string).collect();
                format!("applies only to {}", names.join(", "))
            }
        })
    }
}

/// Reports whether the values framing can carry the step.
fn is_value(step: &CaseStep) -> bool {
    match step {
        CaseStep::Send(text) => {
            String::from_utf8(text.bytes()).is_ok_and(|text| Json::parse(&text).is_ok())
        }
        CaseStep::Raw(_) => false,
        _ => true,
    }
}
