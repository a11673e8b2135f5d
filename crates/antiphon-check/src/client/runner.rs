//! The whole run: scenario after scenario, whatever becomes of the client.

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::{Instant, timeout_at};

use super::codec::ClientWire;
use super::evaluate::{ScenarioOutcome, judge, obstacle};
use super::message_checks::Observations;
use super::scenario::{CaseInfo, ExpectedExit};
use super::scenario_run::{ScenarioObservation, ScenarioRunner};
use super::scenarios::{self, SuiteEntry};
use crate::error::{CheckError, CheckErrorKind};
use crate::result::CaseResult;

/// A run under way.
pub(super) struct ClientRunner {
    pub(super) stage: ScenarioRunner,
    pub(super) deadline: Option<Instant>,
    /// Scenarios at once.
    pub(super) jobs: usize,
}

/// What became of an entry, before all is seen.
enum EntryState {
    /// The one that all rest on, which is judged already.
    Ordinary,
    Seen(ScenarioObservation),
    NotRun(String),
    /// The time was up.
    Late,
    /// It is only looked at.
    Looked,
}

impl ClientRunner {
    /// Puts each on; `told` hears how many are done. Gives the verdicts, and whether the time was up
    /// before all was run. What is only looked at is judged when all is seen.
    pub(super) async fn judge(
        &self,
        entries: &[SuiteEntry],
        told: impl Fn(usize, &str),
    ) -> Result<(Vec<CaseResult>, bool), CheckError> {
        let mut observed = Observations::default();
        let (ordinary, calls) = self.begin(&mut observed).await?;
        let each = entries.iter().map(|entry| Box::pin(self.entry(entry)));
        let mut all = stream::iter(each).buffered(self.jobs);
        let (mut judged, mut is_late) = (Vec::with_capacity(entries.len()), false);
        for (index, entry) in entries.iter().enumerate() {
            told(index, entry.about().group);
            let Some(played) = all.next().await else { break };
            let played = played?;
            is_late |= matches!(played, EntryState::Late);
            let status = match entry {
                SuiteEntry::Scenario(scenario)
                    if scenario.expect == ExpectedExit::ResultOfOne && calls > 1 =>
                {
                    let reason = "the client makes more than one call".to_owned();
                    Some(entry.about().judged(ScenarioOutcome::NotRun(reason)))
                }
                _ => self.status(entry, played, &ordinary, &mut observed),
            };
            judged.push(status);
        }
        let judged = entries.iter().zip(judged).filter_map(|(entry, judged)| match entry {
            SuiteEntry::Check(check) => judged.or_else(|| Some(check.judge(&observed))),
            SuiteEntry::Scenario(_) => judged,
        });
        Ok((judged.collect(), is_late))
    }

    /// An ordinary call must get its result, or nothing can be judged.
    async fn begin(&self, observed: &mut Observations) -> Result<(CaseResult, usize), CheckError> {
        let scenario = scenarios::ordinary();
        let seen = self.stage.play(&scenario).await?;
        observed.add(scenario.about.name, &seen.record);
        match obstacle(&scenario, &seen, self.stage.limit) {
            None => Ok((judge(&scenario, &seen, self.stage.limit), seen.record.calls)),
            Some(reason) => Err(refused(&reason, &seen)),
        }
    }

    async fn entry(&self, entry: &SuiteEntry) -> Result<EntryState, CheckError> {
        if let Some(reason) = self.elsewhere(entry.about()) {
            return Ok(EntryState::NotRun(reason));
        }
        match entry {
            SuiteEntry::Check(_) => Ok(EntryState::Looked),
            SuiteEntry::Scenario(scenario) if scenario.about.name == scenarios::ORDINARY => {
                Ok(EntryState::Ordinary)
            }
            SuiteEntry::Scenario(_) if self.deadline.is_some_and(|end| Instant::now() > end) => {
                Ok(EntryState::Late)
            }
            SuiteEntry::Scenario(scenario) => match self.deadline {
                None => self.stage.play(scenario).await.map(EntryState::Seen),
                Some(end) => match timeout_at(end, self.stage.play(scenario)).await {
                    Ok(seen) => seen.map(EntryState::Seen),
                    Err(_) => Ok(EntryState::Late),
                },
            },
        }
    }

    /// The verdict, where it can be given already.
    fn status(
        &self,
        entry: &SuiteEntry,
        played: EntryState,
        ordinary: &CaseResult,
        observed: &mut Observations,
    ) -> Option<CaseResult> {
        let not_run = |reason: String| entry.about().judged(ScenarioOutcome::NotRun(reason));
        match (entry, played) {
            (_, EntryState::Ordinary) => Some(ordinary.clone()),
            (_, EntryState::NotRun(reason)) => Some(not_run(reason)),
            (_, EntryState::Late) => {
                Some(not_run("the time was up: --budget gives more".to_owned()))
            }
            (SuiteEntry::Scenario(scenario), EntryState::Seen(seen)) => {
                observed.add(scenario.about.name, &seen.record);
                Some(judge(scenario, &seen, self.stage.limit))
            }
            (_, EntryState::Looked | EntryState::Seen(_)) => None,
        }
    }

    /// Why it is not for this wire, or this client.
    fn elsewhere(&self, about: &CaseInfo) -> Option<String> {
        let has_own_result =
            about.name.starts_with("result-") || ["escapes", "byte-by-byte"].contains(&about.name);
        if self.stage.result.is_some() && has_own_result {
            return Some("it has a result of its own, and --result names another".to_owned());
        }
        if about.wires.contains(&self.stage.wire) {
            return None;
        }
        let names: Vec<&str> = about.wires.iter().copied().map(ClientWire::name).collect();
        Some(format!("it is about {}", names.join(", ")))
    }
}

/// Says what was seen of a client that does not do the least.
fn refused(reason: &str, seen: &ScenarioObservation) -> CheckError {
    let fault = seen.record.faults.iter().take(3).map(|fault| format!("; {}", fault.reason));
    let words = seen.last_words.iter().map(|words| format!("; its last words: {words}"));
    let more: String = fault.chain(words).collect();
    CheckError::new(CheckErrorKind::Protocol, format!("no ordinary call succeeds: {reason}{more}")).hint(
        "the client must make a call and exit with 0 when it has a result; --result gives it another",
    ).with_dialogue(seen.record.lines.iter().take(6).cloned().collect())
}
