//! The whole run: scenario after scenario, whatever becomes of the client.

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::{Instant, timeout_at};

use super::judge::{Finding, judge, obstacle};
use super::observed::Observed;
use super::scenario::{About, Expect};
use super::scenarios::{self, Entry};
use super::stage::{Seen, Stage};
use super::wire::Wire;
use crate::check::verdict::{Judged, Said};
use crate::exit::{Exit, Failure};
use crate::output;

/// A run under way.
pub(super) struct Run {
    pub(super) stage: Stage,
    pub(super) deadline: Option<Instant>,
    /// Scenarios at once.
    pub(super) jobs: usize,
}

/// What became of an entry, before all is seen.
enum Played {
    /// The one that all rest on, which is judged already.
    Ordinary,
    Seen(Seen),
    NotRun(String),
    /// The time was up.
    Late,
    /// It is only looked at.
    Looked,
}

impl Run {
    /// Puts each on; `told` hears how many are done. Gives the verdicts, and whether the time was up
    /// before all was run. What is only looked at is judged when all is seen.
    pub(super) async fn judge(
        &self,
        entries: &[Entry],
        told: impl Fn(usize, &str),
    ) -> Result<(Vec<Judged>, bool), Failure> {
        let mut observed = Observed::default();
        let (ordinary, calls) = self.begin(&mut observed).await?;
        let each = entries.iter().map(|entry| Box::pin(self.entry(entry)));
        let mut all = stream::iter(each).buffered(self.jobs);
        let (mut judged, mut is_late) = (Vec::with_capacity(entries.len()), false);
        for (index, entry) in entries.iter().enumerate() {
            told(index, entry.about().group);
            let Some(played) = all.next().await else { break };
            let played = played?;
            is_late |= matches!(played, Played::Late);
            let verdict = match entry {
                Entry::Scenario(scenario)
                    if scenario.expect == Expect::ResultOfOne && calls > 1 =>
                {
                    let reason = "the client makes more than one call".to_owned();
                    Some(entry.about().judged(Finding::NotRun(reason)))
                }
                _ => self.verdict(entry, played, &ordinary, &mut observed),
            };
            judged.push(verdict);
        }
        let judged = entries.iter().zip(judged).filter_map(|(entry, judged)| match entry {
            Entry::Check(check) => judged.or_else(|| Some(check.judge(&observed))),
            Entry::Scenario(_) => judged,
        });
        Ok((judged.collect(), is_late))
    }

    /// An ordinary call must get its result, or nothing can be judged.
    async fn begin(&self, observed: &mut Observed) -> Result<(Judged, usize), Failure> {
        let scenario = scenarios::ordinary();
        let seen = self.stage.play(&scenario).await?;
        observed.add(scenario.about.name, &seen.record);
        match obstacle(&scenario, &seen, self.stage.limit) {
            None => Ok((judge(&scenario, &seen, self.stage.limit), seen.record.calls)),
            Some(reason) => Err(refused(&reason, &seen)),
        }
    }

    async fn entry(&self, entry: &Entry) -> Result<Played, Failure> {
        if let Some(reason) = self.elsewhere(entry.about()) {
            return Ok(Played::NotRun(reason));
        }
        match entry {
            Entry::Check(_) => Ok(Played::Looked),
            Entry::Scenario(scenario) if scenario.about.name == scenarios::ORDINARY => {
                Ok(Played::Ordinary)
            }
            Entry::Scenario(_) if self.deadline.is_some_and(|end| Instant::now() > end) => {
                Ok(Played::Late)
            }
            Entry::Scenario(scenario) => match self.deadline {
                None => self.stage.play(scenario).await.map(Played::Seen),
                Some(end) => match timeout_at(end, self.stage.play(scenario)).await {
                    Ok(seen) => seen.map(Played::Seen),
                    Err(_) => Ok(Played::Late),
                },
            },
        }
    }

    /// The verdict, where it can be given already.
    fn verdict(
        &self,
        entry: &Entry,
        played: Played,
        ordinary: &Judged,
        observed: &mut Observed,
    ) -> Option<Judged> {
        let not_run = |reason: String| entry.about().judged(Finding::NotRun(reason));
        match (entry, played) {
            (_, Played::Ordinary) => Some(ordinary.clone()),
            (_, Played::NotRun(reason)) => Some(not_run(reason)),
            (_, Played::Late) => Some(not_run("the time was up: --budget gives more".to_owned())),
            (Entry::Scenario(scenario), Played::Seen(seen)) => {
                observed.add(scenario.about.name, &seen.record);
                Some(judge(scenario, &seen, self.stage.limit))
            }
            (_, Played::Looked | Played::Seen(_)) => None,
        }
    }

    /// Why it is not for this wire, or this client.
    fn elsewhere(&self, about: &About) -> Option<String> {
        let has_own_result =
            about.name.starts_with("result-") || ["escapes", "byte-by-byte"].contains(&about.name);
        if self.stage.result.is_some() && has_own_result {
            return Some("it has a result of its own, and --result names another".to_owned());
        }
        if about.wires.contains(&self.stage.wire) {
            return None;
        }
        let names: Vec<&str> = about.wires.iter().copied().map(Wire::name).collect();
        Some(format!("it is about {}", names.join(", ")))
    }
}

/// Says what was seen of a client that does not do the least.
fn refused(reason: &str, seen: &Seen) -> Failure {
    for said in seen.record.lines.iter().take(6) {
        let (mark, text) = match said {
            Said::Sent(text) => ("-->", text),
            Said::Came(text) => ("<--", text),
        };
        output::note(&format!("{} {}", output::dim(mark), output::visible(text)));
    }
    let fault = seen.record.faults.iter().take(3).map(|fault| format!("; {}", fault.reason));
    let words = seen.last_words.iter().map(|words| format!("; its last words: {words}"));
    let more: String = fault.chain(words).collect();
    Failure::new(Exit::Protocol, format!("no ordinary call succeeds: {reason}{more}")).hint(
        "the client must make a call and exit with 0 when it has a result; --result gives it another",
    )
}
