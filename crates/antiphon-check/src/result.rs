//! Results of cases, and how a finding becomes a status.
//!
//! The rule has one home, [`CaseStatus::of`]: an unmet MUST fails, an unmet SHOULD warns, and a choice
//! is reported but not scored. A crash fails at every level.

use std::fmt;

use crate::transcript::RequirementLevel;

/// The result of one case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The group of the case.
    pub group: String,
    /// The stable, unique name of the case.
    pub name: String,
    /// The required behaviour, in one sentence.
    pub title: String,
    /// The requirement level of the case.
    pub level: RequirementLevel,
    /// The section of the specification or RFC, such as `4.1` or `RFC 9110 15.5.6`.
    pub section: String,
    /// The reason for the requirement.
    pub why: Option<String>,
    /// The status.
    pub status: CaseStatus,
    /// The finding, or the reason why the case was not run.
    pub reason: Option<String>,
    /// The kind of the finding.
    pub fault: Option<FailureKind>,
    /// The messages before the finding.
    pub dialogue: Vec<DialogueLine>,
}

/// The status of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaseStatus {
    /// The peer meets the requirement.
    Passed,
    /// A MUST is not met, or the peer crashed.
    Failed,
    /// A SHOULD is not met.
    Warned,
    /// The specification allows both, and the peer chooses differently from Antiphon.
    Differs,
    /// The case does not apply, or the time was up.
    NotRun,
}

impl CaseStatus {
    pub(crate) const ALL: [Self; 5] =
        [Self::Passed, Self::Failed, Self::Warned, Self::Differs, Self::NotRun];

    /// Returns the status of a finding at this level.
    pub(crate) fn of(level: RequirementLevel, fault: FailureKind) -> Self {
        match (level, fault) {
            (_, FailureKind::Crashed) | (RequirementLevel::Must, _) => Self::Failed,
            (RequirementLevel::Should, _) => Self::Warned,
            (RequirementLevel::Choice, _) => Self::Differs,
        }
    }
}

impl fmt::Display for CaseStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Warned => "warned",
            Self::Differs => "differs",
            Self::NotRun => "not-run",
        })
    }
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The response differs from the expected one.
    Wrong,
    /// No response arrived in time.
    Silent,
    /// More messages arrived than expected.
    Extra,
    /// The connection was closed.
    Closed,
    /// The peer's process ended.
    Crashed,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wrong => "wrong",
            Self::Silent => "silent",
            Self::Extra => "extra",
            Self::Closed => "closed",
            Self::Crashed => "crashed",
        })
    }
}

/// A deviation of the peer, found by one case.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) fault: FailureKind,
    pub(crate) reason: String,
}

impl Finding {
    pub(crate) fn new(fault: FailureKind, reason: impl Into<String>) -> Self {
        Self { fault, reason: reason.into() }
    }

    /// Puts an explanation before the reason.
    pub(crate) fn because(self, how: &str) -> Self {
        Self { reason: format!("{how}\n{}", self.reason), ..self }
    }
}

/// One message of a dialogue. A long text is shown without its middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogueLine {
    /// The checker sent it.
    Sent(String),
    /// The peer sent it.
    Received(String),
}

impl DialogueLine {
    pub(crate) fn sent(bytes: &[u8]) -> Self {
        Self::Sent(shortened(bytes))
    }

    pub(crate) fn received(bytes: &[u8]) -> Self {
        Self::Received(shortened(bytes))
    }

    /// Removes the middle of a long dialogue, so that a server that floods does not fill the report.
    pub(crate) fn abridged(mut dialogue: Vec<Self>) -> Vec<Self> {
        const SHOWN: usize = 20;
        if dialogue.len() > 3 * SHOWN {
            let left_out = dialogue.len() - 2 * SHOWN;
            let mark = Self::Received(format!("...{left_out} lines..."));
            dialogue.splice(SHOWN..SHOWN + left_out, [mark]);
        }
        dialogue
    }
}

/// Returns the text; a long one without its middle.
pub(crate) fn shortened(bytes: &[u8]) -> String {
    const SHOWN: usize = 200;
    if bytes.len() <= 3 * SHOWN {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let head = String::from_utf8_lossy(&bytes[..SHOWN]);
    let tail = String::from_utf8_lossy(&bytes[bytes.len() - SHOWN..]);
    let cut = |c: char| c == char::REPLACEMENT_CHARACTER;
    let (head, tail) = (head.trim_end_matches(cut), tail.trim_start_matches(cut));
    format!("{head} ...{} bytes... {tail}", bytes.len() - 2 * SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_fails_at_every_level() {
        for level in [RequirementLevel::Must, RequirementLevel::Should, RequirementLevel::Choice] {
            assert_eq!(CaseStatus::of(level, FailureKind::Crashed), CaseStatus::Failed);
        }
        assert_eq!(
            CaseStatus::of(RequirementLevel::Should, FailureKind::Silent),
            CaseStatus::Warned
        );
        assert_eq!(
            CaseStatus::of(RequirementLevel::Choice, FailureKind::Closed),
            CaseStatus::Differs
        );
    }

    #[test]
    fn long_dialogues_are_shown_without_their_middle() {
        let lines =
            |count| (0..count).map(|n: usize| DialogueLine::Received(n.to_string())).collect();
        assert_eq!(DialogueLine::abridged(lines(60)).len(), 60);
        let shown = DialogueLine::abridged(lines(1000));
        assert_eq!((shown.len(), &shown[40]), (41, &DialogueLine::Received("999".into())));
        assert_eq!(shown[20], DialogueLine::Received("...960 lines...".into()));
    }

    #[test]
    fn long_texts_are_shown_without_their_middle() {
        assert_eq!(shortened(b"abc"), "abc");
        let long = "é".repeat(10_000);
        let shown = shortened(long.as_bytes());
        assert!(shown.contains("...19600 bytes...") && shown.len() < 500, "{shown}");
    }
}
