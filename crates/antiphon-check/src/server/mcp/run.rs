//! The order of an MCP run: the cases of one era after the other, and at last those that watch every message.

use std::sync::Arc;

use super::{McpFeatures, Violations};
use crate::result::{CaseResult, CaseStatus};
use crate::server::case_outcome::result_of;
use crate::server::suite_run::SuiteRun;
use crate::transcript::{McpEra, Profile, TranscriptCase};

/// Runs the cases in turn. Calls `on_case` before each. The shipped cases of other groups do not apply: they know
/// neither the handshake nor the metadata of MCP.
pub(in crate::server) async fn run_cases(
    run: &mut SuiteRun,
    cases: &[TranscriptCase],
    is_shipped: bool,
    on_case: impl Fn(usize, &TranscriptCase),
) -> Vec<CaseResult> {
    let mut results: Vec<Option<CaseResult>> = vec![None; cases.len()];
    let mut seen: Vec<McpFeatures> = Vec::new();
    let mut done = 0;
    while let Some(features) = run.methods.mcp.clone() {
        let is_meant = |case: &TranscriptCase| {
            let is_of_profile = !is_shipped || case.facts.profiles.contains(&Profile::Mcp);
            let is_of_era = case.facts.era.map_or(seen.is_empty(), |era| era == features.era);
            is_of_profile && is_of_era && case.facts.watch.is_none()
        };
        let indexes: Vec<usize> = (0..cases.len()).filter(|at| is_meant(&cases[*at])).collect();
        let meant: Vec<TranscriptCase> = indexes.iter().map(|at| cases[*at].clone()).collect();
        let found = run.run_cases(&meant, |at, case| on_case(done + at, case)).await;
        done += found.len();
        for (at, result) in indexes.into_iter().zip(found) {
            results[at] = Some(result);
        }
        seen.push(features);
        if !run.next_era() {
            break;
        }
    }
    let rest = cases.iter().zip(results);
    rest.map(|(case, result)| result.unwrap_or_else(|| of_rest(run, case, &seen))).collect()
}

/// Returns the result of a case that no era has run.
fn of_rest(run: &SuiteRun, case: &TranscriptCase, eras: &[McpFeatures]) -> CaseResult {
    let not_run = |reason: String| result_of(case, CaseStatus::NotRun, Some(reason));
    let facts = &case.facts;
    let Some(rule) = facts.watch else {
        return not_run(match facts.era {
            Some(era) => lacks_era(era),
            None => "the profile mcp has cases of its own".to_owned(),
        });
    };
    if let Some(era) = facts.era.filter(|era| !eras.iter().any(|seen| seen.era == *era)) {
        return not_run(lacks_era(era));
    }
    if let Some(reason) = run.transport_obstacle(case) {
        return not_run(reason);
    }
    let meant = eras.iter().filter(|seen| facts.era.is_none_or(|era| era == seen.era));
    let lacking: Vec<Option<String>> =
        meant.map(|seen| facts.needs.iter().flatten().find_map(|need| seen.lacks(need))).collect();
    match lacking.iter().all(Option::is_some) {
        true => not_run(format!("requires {}", lacking[0].as_deref().unwrap_or_default())),
        false => run.violations().judge(case, rule),
    }
}

fn lacks_era(era: McpEra) -> String {
    match era {
        McpEra::Legacy => {
            "the server does not accept `initialize` (MCP up to 2025-11-25)".to_owned()
        }
        McpEra::Modern => {
            "the server does not accept `server/discover` (MCP 2026-07-28)".to_owned()
        }
    }
}

impl SuiteRun {
    /// Returns what the monitors of the run have found.
    fn violations(&self) -> Arc<Violations> {
        let client = self.server_access.mcp.as_ref();
        client.map_or_else(Arc::default, |client| Arc::clone(&client.violations))
    }

    /// Goes on with the next era of the server, if there is one.
    fn next_era(&mut self) -> bool {
        if self.later_eras.is_empty() {
            return false;
        }
        let next = self.later_eras.remove(0);
        self.server_access.mcp = Some(next.client);
        self.methods = next.methods;
        true
    }
}
