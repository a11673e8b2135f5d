//! Evaluates a scenario: how the client must exit, and what the record must show.

use std::time::Duration;

use super::client_process::ClientExit;
use super::record::ScenarioRecord;
use super::scenario::{CaseInfo, ExpectedExit, Precondition, Scenario};
use super::scenario_runner::ScenarioObservation;
use crate::result::{CaseResult, CaseStatus, DialogueLine, FailureKind};
use crate::transcript::RequirementLevel;

/// The outcome of a scenario.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScenarioOutcome {
    Fine,
    Wrong(FailureKind, String),
    NotRun(String),
}

/// Evaluates the observation of a scenario.
pub(super) fn evaluate(
    scenario: &Scenario,
    observation: &ScenarioObservation,
    limit: Duration,
) -> CaseResult {
    let mut finding = find(scenario, observation, limit);
    let mut dialogue = Vec::new();
    if let ScenarioOutcome::Wrong(_, reason) = &mut finding {
        dialogue.clone_from(&observation.record.lines);
        dialogue.push(DialogueLine::Received(format!("(the client {})", observation.ending)));
        if let Some(words) = &observation.last_error {
            reason.push_str(&format!("\nits stderr: {words}"));
        }
    }
    CaseResult { dialogue, ..scenario.about.outcome(finding) }
}

/// Returns the reason why the run cannot go on; `None` if an ordinary call succeeds.
pub(super) fn obstacle(
    scenario: &Scenario,
    observation: &ScenarioObservation,
    limit: Duration,
) -> Option<String> {
    match find(scenario, observation, limit) {
        ScenarioOutcome::Fine => None,
        ScenarioOutcome::Wrong(_, reason) | ScenarioOutcome::NotRun(reason) => Some(reason),
    }
}

fn find(
    scenario: &Scenario,
    observation: &ScenarioObservation,
    limit: Duration,
) -> ScenarioOutcome {
    let code = match observation.ending {
        ClientExit::Signal(signal) => {
            return ScenarioOutcome::Wrong(
                FailureKind::Crashed,
                format!("signal {signal} killed the client"),
            );
        }
        ClientExit::Hung => {
            let reason = format!("the client was still running after {}", in_words(limit));
            return ScenarioOutcome::Wrong(
                FailureKind::Silent,
                format!("{reason}, and was killed"),
            );
        }
        ClientExit::Code(code) => code,
    };
    if let Some(reason) = unmet(scenario.needs, &observation.record) {
        return ScenarioOutcome::NotRun(reason.to_owned());
    }
    if let Some(reason) = unexpected_exit(scenario.expect, code, &observation.record) {
        return ScenarioOutcome::Wrong(FailureKind::Wrong, reason);
    }
    match scenario.record_check.map(|check| check(&observation.record)) {
        Some(Err(reason)) => ScenarioOutcome::Wrong(FailureKind::Wrong, reason),
        _ => ScenarioOutcome::Fine,
    }
}

/// Returns a time as the command line writes it.
fn in_words(time: Duration) -> String {
    match time.as_millis() {
        millis if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        millis if millis.is_multiple_of(1_000) => format!("{}s", millis / 1_000),
        millis => format!("{millis}ms"),
    }
}

/// Returns the precondition that the client did not meet.
fn unmet(needs: Precondition, record: &ScenarioRecord) -> Option<&'static str> {
    match needs {
        Precondition::Nothing => None,
        _ if record.calls == 0 => Some("the client made no call"),
        Precondition::TwoInFlight if record.in_flight < 2 => {
            Some("the client never had two calls in flight")
        }
        Precondition::OneInFlight if record.in_flight > 1 => {
            Some("the client had more than one call in flight")
        }
        Precondition::Http11 if record.is_http10 => Some("the client speaks HTTP/1.0"),
        Precondition::SingleCall if record.singles == 0 => Some("the client sent batches only"),
        Precondition::Batch if record.batches == 0 => Some("the client sent no batch"),
        _ => None,
    }
}

fn unexpected_exit(expect: ExpectedExit, code: i32, record: &ScenarioRecord) -> Option<String> {
    match expect {
        ExpectedExit::Result if code != 0 => {
            Some(format!("the client exited with {code}, although its calls got results"))
        }
        ExpectedExit::ResultOfOne if code != 0 && record.calls == 1 => {
            Some(format!("the client exited with {code}, although its call got a result"))
        }
        ExpectedExit::Failure if code == 0 => {
            Some("the client exited with 0, although its call got no result".to_owned())
        }
        _ => None,
    }
}

impl CaseInfo {
    /// Returns the result of the case, without a dialogue.
    pub(super) fn outcome(&self, finding: ScenarioOutcome) -> CaseResult {
        let (status, reason, fault) = match finding {
            ScenarioOutcome::Fine => (CaseStatus::Passed, None, None),
            ScenarioOutcome::NotRun(reason) => (CaseStatus::NotRun, Some(reason), None),
            // A client that hangs fails, unless the specification leaves a choice.
            ScenarioOutcome::Wrong(FailureKind::Silent, reason)
                if self.level != RequirementLevel::Choice =>
            {
                (CaseStatus::Failed, Some(reason), Some(FailureKind::Silent))
            }
            ScenarioOutcome::Wrong(fault, reason) => {
                (CaseStatus::of(self.level, fault), Some(reason), Some(fault))
            }
        };
        CaseResult {
            group: self.group.to_owned(),
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            level: self.level,
            section: self.section.to_owned(),
            why: (!self.why.is_empty()).then(|| self.why.to_owned()),
            status,
            reason,
            fault,
            dialogue: Vec::new(),
        }
    }
}
