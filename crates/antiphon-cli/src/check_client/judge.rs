//! Did the client do what the scenario asks of it?

use std::time::Duration;

use super::process::Ending;
use super::record::Record;
use super::scenario::{About, Expect, Needs, Scenario};
use super::stage::Seen;
use crate::check::transcript::Level;
use crate::check::verdict::{Fault, Judged, Said, Verdict};
use crate::quantity::Span;

/// What is wrong, or why nothing can be said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Fine,
    Wrong(Fault, String),
    NotRun(String),
}

/// Judges what was seen of a scenario.
pub(super) fn judge(scenario: &Scenario, seen: &Seen, limit: Duration) -> Judged {
    let mut finding = find(scenario, seen, limit);
    let mut dialogue = Vec::new();
    if let Finding::Wrong(_, reason) = &mut finding {
        dialogue.clone_from(&seen.record.lines);
        dialogue.push(Said::Came(format!("(the client {})", seen.ending)));
        if let Some(words) = &seen.last_words {
            reason.push_str(&format!("\nits last words: {words}"));
        }
    }
    Judged { dialogue, ..scenario.about.judged(finding) }
}

/// Why nothing else need be tried; nothing, where an ordinary call gets its result.
pub(super) fn obstacle(scenario: &Scenario, seen: &Seen, limit: Duration) -> Option<String> {
    match find(scenario, seen, limit) {
        Finding::Fine => None,
        Finding::Wrong(_, reason) | Finding::NotRun(reason) => Some(reason),
    }
}

fn find(scenario: &Scenario, seen: &Seen, limit: Duration) -> Finding {
    let code = match seen.ending {
        Ending::Signal(signal) => {
            return Finding::Wrong(Fault::Crashed, format!("the client died of signal {signal}"));
        }
        Ending::Hung => {
            let reason = format!("the client was still running after {}", Span(limit));
            return Finding::Wrong(Fault::Silent, format!("{reason}, and was killed"));
        }
        Ending::Code(code) => code,
    };
    if let Some(reason) = unmet(scenario.needs, &seen.record) {
        return Finding::NotRun(reason.to_owned());
    }
    if let Some(reason) = disappointed(scenario.expect, code, &seen.record) {
        return Finding::Wrong(Fault::Wrong, reason);
    }
    match scenario.proof.map(|proof| proof(&seen.record)) {
        Some(Err(reason)) => Finding::Wrong(Fault::Wrong, reason),
        _ => Finding::Fine,
    }
}

/// What the client has not done, without which there is nothing to judge.
fn unmet(needs: Needs, record: &Record) -> Option<&'static str> {
    match needs {
        Needs::Nothing => None,
        _ if record.calls == 0 => Some("the client made no call"),
        Needs::TwoInFlight if record.in_flight < 2 => {
            Some("the client never had two calls in flight")
        }
        Needs::OneInFlight if record.in_flight > 1 => {
            Some("the client had more than one call in flight")
        }
        Needs::Http11 if record.is_old => Some("the client speaks HTTP/1.0"),
        Needs::SingleCall if record.singles == 0 => Some("the client sent batches only"),
        Needs::Batch if record.batches == 0 => Some("the client sent no batch"),
        _ => None,
    }
}

fn disappointed(expect: Expect, code: i32, record: &Record) -> Option<String> {
    match expect {
        Expect::Result if code != 0 => {
            Some(format!("the client exited with {code}, though its calls had results"))
        }
        Expect::ResultOfOne if code != 0 && record.calls == 1 => {
            Some(format!("the client exited with {code}, though its call had a result"))
        }
        Expect::Failure if code == 0 => {
            Some("the client exited with 0, though its call had no result".to_owned())
        }
        _ => None,
    }
}

impl About {
    /// The verdict, without a dialogue.
    pub(super) fn judged(&self, finding: Finding) -> Judged {
        let (verdict, reason, fault) = match finding {
            Finding::Fine => (Verdict::Passed, None, None),
            Finding::NotRun(reason) => (Verdict::NotRun, Some(reason), None),
            // To wait for ever fails, but where it is a choice.
            Finding::Wrong(Fault::Silent, reason) if self.level != Level::Choice => {
                (Verdict::Failed, Some(reason), Some(Fault::Silent))
            }
            Finding::Wrong(fault, reason) => {
                (Verdict::of(self.level, fault), Some(reason), Some(fault))
            }
        };
        Judged {
            group: self.group.to_owned(),
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            level: self.level,
            section: self.section.to_owned(),
            why: (!self.why.is_empty()).then(|| self.why.to_owned()),
            verdict,
            reason,
            fault,
            dialogue: Vec::new(),
        }
    }
}
