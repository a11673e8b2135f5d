//! What is found, and how it is graded.
//!
//! One place says what a level makes of a finding: a MUST that is not met fails, a SHOULD warns, a
//! choice is told and never judged. A crash fails whatever the level is.

use std::fmt;

use crate::transcript::RequirementLevel;

/// What became of one case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    pub group: String,
    /// Stable, and unique.
    pub name: String,
    /// What must happen.
    pub title: String,
    pub level: RequirementLevel,
    /// The section that asks for it.
    pub section: String,
    pub why: Option<String>,
    pub status: CaseStatus,
    /// What is wrong, or why it was not run.
    pub reason: Option<String>,
    pub fault: Option<FailureKind>,
    /// What was said before it was found.
    pub dialogue: Vec<DialogueLine>,
}

/// The grade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseStatus {
    Passed,
    /// A MUST is not met, or it crashed.
    Failed,
    /// A SHOULD is not met.
    Warned,
    /// A choice that is not Antiphon's.
    Differs,
    NotRun,
}

impl CaseStatus {
    pub(crate) const ALL: [Self; 5] =
        [Self::Passed, Self::Failed, Self::Warned, Self::Differs, Self::NotRun];

    /// What a finding means at this level.
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

/// What kind of wrong it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Something else came.
    Wrong,
    /// Nothing came.
    Silent,
    /// More came than was asked for.
    Extra,
    /// The connection was closed.
    Closed,
    /// The process is gone.
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

/// What a case has against the other side.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) fault: FailureKind,
    pub(crate) reason: String,
}

impl Finding {
    pub(crate) fn new(fault: FailureKind, reason: impl Into<String>) -> Self {
        Self { fault, reason: reason.into() }
    }

    /// The same, with what comes first to explain it.
    pub(crate) fn because(self, how: &str) -> Self {
        Self { reason: format!("{how}\n{}", self.reason), ..self }
    }
}

/// One line of a dialogue, as it is shown: a long text without its middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogueLine {
    Sent(String),
    Received(String),
}

impl DialogueLine {
    pub(crate) fn sent(bytes: &[u8]) -> Self {
        Self::Sent(shortened(bytes))
    }

    pub(crate) fn came(bytes: &[u8]) -> Self {
        Self::Received(shortened(bytes))
    }

    /// As much of a dialogue as a person reads: a server that floods fills no report.
    pub(crate) fn abridged(mut dialogue: Vec<Self>) -> Vec<Self> {
        const SHOWN: usize = 20;
        if dialogue.len() > 3 * SHOWN {
            let left_out = dialogue.len() - 2 * SHOWN;
            let told = Self::Received(format!("...{left_out} lines..."));
            dialogue.splice(SHOWN..SHOWN + left_out, [told]);
        }
        dialogue
    }
}

/// The text, or as much of it as a person reads.
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
    fn a_crash_fails_whatever_is_asked() {
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
