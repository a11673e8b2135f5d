//! The run of the suite: one scenario after the other, whatever the client does.

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::{Instant, timeout_at};

use super::codec::ClientWire;
use super::evaluate::{ScenarioOutcome, evaluate, obstacle};
use super::message_checks::Observations;
use super::scenario::{CaseInfo, ExpectedExit};
use super::scenario_runner::{ScenarioObservation, ScenarioRunner};
use super::scenarios::{self, SuiteEntry};
use crate::error::{CheckError, CheckErrorKind};
use crate::result::CaseResult;

/// The runner of a client check.
pub(super) struct ClientRunner {
    pub(super) runner: ScenarioRunner,
    pub(super) deadline: Option<Instant>,
    /// The number of scenarios at once.
    pub(super) jobs: usize,
}

/// The state of an entry during the run.
enum EntryState {
    /// The ordinary call, which is already evaluated.
    Ordinary,
    Seen(ScenarioObservation),
    NotRun(String),
    /// The time was up.
    Late,
    /// A message check, which is evaluated at the end.
    AtEnd,
}

impl ClientRunner {
    /// Runs every entry. Returns the results, and whether the time was up before all were run. Message
    /// checks are evaluated at the end.
    pub(super) async fn evaluate(
        &self,
        entries: &[SuiteEntry],
        on_progress: impl Fn(usize, &str),
    ) -> Result<(Vec<CaseResult>, bool), CheckError> {
        let mut observed = Observations::default();
        let (ordinary, calls) = self.begin(&mut observed).await?;
        let each = entries.iter().map(|entry| Box::pin(self.entry(entry)));
        let mut all = stream::iter(each).buffered(self.jobs);
        let (mut outcome, mut is_late) = (Vec::with_capacity(entries.len()), false);
        for (index, entry) in entries.iter().enumerate() {
            on_progress(index, entry.about().group);
            let Some(played) = all.next().await else { break };
            let played = played?;
            is_late |= matches!(played, EntryState::Late);
            let status = match entry {
                SuiteEntry::Scenario(scenario)
                    if scenario.expect == ExpectedExit::ResultOfOne && calls > 1 =>
                {
                    let reason = "the client makes more than one call".to_owned();
                    Some(entry.about().outcome(ScenarioOutcome::NotRun(reason)))
                }
                _ => self.status(entry, played, &ordinary, &mut observed),
            };
            outcome.push(status);
        }
        let outcome = entries.iter().zip(outcome).filter_map(|(entry, outcome)| match entry {
            SuiteEntry::Check(check) => outcome.or_else(|| Some(check.evaluate(&observed))),
            SuiteEntry::Scenario(_) => outcome,
        });
        Ok((outcome.collect(), is_late))
    }

    /// Runs the ordinary call. Without its result, no other scenario can be evaluated.
    async fn begin(&self, observed: &mut Observations) -> Result<(CaseResult, usize), CheckError> {
        let scenario = scenarios::ordinary();
        let observation = self.runner.run(&scenario).await?;
        observed.add(scenario.about.name, &observation.record);
        match obstacle(&scenario, &observation, self.runner.limit) {
            None => {
                Ok((evaluate(&scenario, &observation, self.runner.limit), observation.record.calls))
            }
            Some(reason) => Err(no_ordinary_call(&reason, &observation)),
        }
    }

    async fn entry(&self, entry: &SuiteEntry) -> Result<EntryState, CheckError> {
        if let Some(reason) = self.elsewhere(entry.about()) {
            return Ok(EntryState::NotRun(reason));
        }
        match entry {
            SuiteEntry::Check(_) => Ok(EntryState::AtEnd),
            SuiteEntry::Scenario(scenario) if scenario.about.name == scenarios::ORDINARY => {
                Ok(EntryState::Ordinary)
            }
            SuiteEntry::Scenario(_) if self.deadline.is_some_and(|end| Instant::now() > end) => {
                Ok(EntryState::Late)
            }
            SuiteEntry::Scenario(scenario) => match self.deadline {
                None => self.runner.run(scenario).await.map(EntryState::Seen),
                Some(end) => match timeout_at(end, self.runner.run(scenario)).await {
                    Ok(observation) => observation.map(EntryState::Seen),
                    Err(_) => Ok(EntryState::Late),
                },
            },
        }
    }

    /// Returns the result of an entry, if it is known before the end.
    fn status(
        &self,
        entry: &SuiteEntry,
        played: EntryState,
        ordinary: &CaseResult,
        observed: &mut Observations,
    ) -> Option<CaseResult> {
        let not_run = |reason: String| entry.about().outcome(ScenarioOutcome::NotRun(reason));
        match (entry, played) {
            (_, EntryState::Ordinary) => Some(ordinary.clone()),
            (_, EntryState::NotRun(reason)) => Some(not_run(reason)),
            (_, EntryState::Late) => {
                Some(not_run("the time limit was reached; --budget sets a longer one".to_owned()))
            }
            (SuiteEntry::Scenario(scenario), EntryState::Seen(observation)) => {
                observed.add(scenario.about.name, &observation.record);
                Some(evaluate(scenario, &observation, self.runner.limit))
            }
            (_, EntryState::AtEnd | EntryState::Seen(_)) => None,
        }
    }

    /// Returns the reason why a case does not apply to this wire or client.
    fn elsewhere(&self, about: &CaseInfo) -> Option<String> {
        let has_own_result =
            about.name.starts_with("result-") || ["escapes", "byte-by-byte"].contains(&about.name);
        if self.runner.result.is_some() && has_own_result {
            return Some("the scenario has its own result, but --result sets another".to_owned());
        }
        if about.wires.contains(&self.runner.wire) {
            return None;
        }
        let names: Vec<&str> = about.wires.iter().copied().map(ClientWire::name).collect();
        Some(format!("applies only to {}", names.join(", ")))
    }
}

/// Describes a client that makes no ordinary call.
fn no_ordinary_call(reason: &str, observation: &ScenarioObservation) -> CheckError {
    let fault = observation.record.faults.iter().take(3).map(|fault| format!("; {}", fault.reason));
    let words = observation.last_error.iter().map(|words| format!("; its stderr: {words}"));
    let more: String = fault.chain(words).collect();
    CheckError::new(CheckErrorKind::Protocol, format!("no ordinary call succeeds: {reason}{more}")).hint(
        "the client must make a call and exit with 0 if it gets a result; --result sets the result",
    ).with_dialogue(observation.record.lines.iter().take(6).cloned().collect())
}
