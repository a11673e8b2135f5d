//! The whole run: scenario after scenario, whatever becomes of the client.

use std::io::ErrorKind;

use tokio::time::Instant;

use super::judge::{Finding, judge, obstacle};
use super::observed::Observed;
use super::scenario::{About, Scenario};
use super::scenarios::{self, Entry};
use super::stage::{Seen, Stage};
use super::wire::Wire;
use crate::check::verdict::{Judged, Said};
use crate::exit::{Exit, Failure};
use crate::output;

/// A run under way.
pub(super) struct Run {
    stage: Stage,
    deadline: Option<Instant>,
    observed: Observed,
    /// Whether the time was up before all was run.
    pub(super) is_late: bool,
}

impl Run {
    pub(super) fn new(stage: Stage, deadline: Option<Instant>) -> Self {
        Self { stage, deadline, observed: Observed::default(), is_late: false }
    }

    /// Puts each on in turn; `seen` is told how many are done. What is only looked at is judged when
    /// all is seen.
    pub(super) async fn judge(
        &mut self,
        entries: &[Entry],
        seen: impl Fn(usize, &str),
    ) -> Result<Vec<Judged>, Failure> {
        let ordinary = self.begin().await?;
        let mut played = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            seen(index, entry.about().group);
            played.push(match entry {
                Entry::Check(_) => None,
                Entry::Scenario(scenario) if scenario.about.name == ordinary.name => {
                    Some(ordinary.clone())
                }
                Entry::Scenario(scenario) => Some(self.scenario(scenario).await?),
            });
        }
        let all = entries.iter().zip(played).filter_map(|(entry, played)| match entry {
            Entry::Check(check) => Some(match self.elsewhere(&check.about) {
                Some(reason) => check.about.judged(Finding::NotRun(reason)),
                None => check.judge(&self.observed),
            }),
            Entry::Scenario(_) => played,
        });
        Ok(all.collect())
    }

    /// An ordinary call must get its result, or nothing can be judged.
    async fn begin(&mut self) -> Result<Judged, Failure> {
        let scenario = scenarios::ordinary();
        let seen = self.play(&scenario).await?;
        match obstacle(&scenario, &seen, self.stage.limit) {
            None => Ok(judge(&scenario, &seen, self.stage.limit)),
            Some(reason) => Err(refused(&reason, &seen)),
        }
    }

    async fn scenario(&mut self, scenario: &Scenario) -> Result<Judged, Failure> {
        let mut reason = self.elsewhere(&scenario.about);
        if reason.is_none() && self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            self.is_late = true;
            reason = Some("the time was up: --budget gives more".to_owned());
        }
        if let Some(reason) = reason {
            return Ok(scenario.about.judged(Finding::NotRun(reason)));
        }
        let seen = self.play(scenario).await?;
        Ok(judge(scenario, &seen, self.stage.limit))
    }

    /// Why it is not for this wire.
    fn elsewhere(&self, about: &About) -> Option<String> {
        if about.wires.contains(&self.stage.wire()) {
            return None;
        }
        let names: Vec<&str> = about.wires.iter().copied().map(Wire::name).collect();
        Some(format!("it is about {}", names.join(", ")))
    }

    async fn play(&mut self, scenario: &Scenario) -> Result<Seen, Failure> {
        let seen = self.stage.play(scenario).await.map_err(|error| {
            let program = self.stage.argv.first().map_or("", String::as_str);
            let failure =
                Failure::new(Exit::Transport, format!("`{program}` does not start: {error}"));
            match error.kind() {
                ErrorKind::NotFound => {
                    failure.hint("check that the command is installed and on the PATH")
                }
                _ => failure,
            }
        })?;
        self.observed.add(scenario.about.name, &seen.record);
        Ok(seen)
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
    let words = seen.last_words.iter().map(|words| format!("; its last words: {words}"));
    let words: String = words.collect();
    Failure::new(Exit::Protocol, format!("no ordinary call succeeds: {reason}{words}")).hint(
        "the client must make a call and exit with 0 when it has a result; --result gives it another",
    )
}
