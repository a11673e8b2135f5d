//! The suite for clients, in the order of the report.

mod endings;
mod errors;
mod http;
mod order;
mod responses;
mod reverse;
mod streams;
mod websocket;

use std::time::Duration;

use super::message_checks::{self, MessageCheck};
use super::received::ReceivedCalls;
use super::scenario::{CaseInfo, Scenario, ServerAction, ServerScript};
use crate::selection::CaseSummary;

const GROUPS: [&str; 7] =
    ["requests", "responses", "order", "errors", "endings", "reverse", "wire"];

/// The name of the scenario that all others depend on.
pub(super) const ORDINARY: &str = "ordinary-call";

/// The pause between two responses: a client that cannot split them fails only later scenarios.
const APART: Duration = Duration::from_millis(50);

/// Returns the scenario that all others depend on: a call gets its result. Calls are held for a moment,
/// to count those in flight.
pub(super) fn ordinary() -> Scenario {
    let hold = ServerScript::HoldThenAct(Duration::from_millis(300), |received, _| {
        let apart = |received: &ReceivedCalls| {
            [ServerAction::Message(received.ordinary()), ServerAction::Wait(APART)]
        };
        received.iter().flat_map(apart).collect()
    });
    let scenario = Scenario::accepts(ORDINARY, "a call gets its result")
        .script(hold)
        .why("All other scenarios depend on it.");
    grouped("requests", scenario)
}

/// An entry of the suite: a scenario, or a check of every message.
#[derive(Clone, Debug)]
pub(super) enum SuiteEntry {
    Scenario(Scenario),
    Check(MessageCheck),
}

impl SuiteEntry {
    pub(super) fn summary(&self) -> CaseSummary<'_> {
        let CaseInfo { group, name, level, title, .. } = *self.about();
        CaseSummary { group, name, level, title }
    }

    pub(super) fn about(&self) -> &CaseInfo {
        match self {
            Self::Scenario(scenario) => &scenario.about,
            Self::Check(check) => &check.about,
        }
    }
}

/// Returns all entries, group by group.
pub(super) fn entries() -> Vec<SuiteEntry> {
    let scenarios = std::iter::once(ordinary()).chain(all()).map(SuiteEntry::Scenario);
    let mut entries: Vec<SuiteEntry> = scenarios.collect();
    entries.extend(message_checks::all().into_iter().map(SuiteEntry::Check));
    let address =
        |entry: &SuiteEntry| GROUPS.iter().position(|group| *group == entry.about().group);
    entries.sort_by_key(address);
    entries
}

/// Returns all scenarios except the ordinary one.
fn all() -> Vec<Scenario> {
    let responses =
        [responses::all(), http::responses(), websocket::responses(), streams::responses()];
    let endings = [endings::all(), http::endings(), websocket::endings(), streams::endings()];
    let reverse = [reverse::all(), websocket::reverse()];
    let groups = [
        ("responses", responses.concat()),
        ("order", order::all()),
        ("errors", errors::all()),
        ("endings", endings.concat()),
        ("reverse", reverse.concat()),
    ];
    let all = groups.into_iter().flat_map(|(group, scenarios)| {
        scenarios.into_iter().map(move |scenario| grouped(group, scenario))
    });
    all.collect()
}

fn grouped(group: &'static str, mut scenario: Scenario) -> Scenario {
    scenario.about.group = group;
    scenario
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_is_unique_and_kebab_case() {
        let mut names = HashSet::new();
        for entry in entries() {
            let CaseInfo { group, name, why, .. } = *entry.about();
            assert!(GROUPS.contains(&group), "{group}");
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(is_plain), "{name}");
            assert!(names.insert(name), "{name} is there twice");
            assert!(!why.is_empty(), "{name} does not say why");
        }
    }
}
