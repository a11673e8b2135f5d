//! Errors that end a run without a result.

use crate::result::DialogueLine;

/// An error that ends a run without a result.
///
/// The message describes the failure; the hint names the remedy, usually a flag of the `antiphon`
/// command.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CheckError {
    kind: CheckErrorKind,
    message: String,
    hint: Option<String>,
    dialogue: Vec<DialogueLine>,
}

/// The kind of a [`CheckError`]. The command maps each kind to one exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckErrorKind {
    /// The options or a transcript are invalid.
    Usage,
    /// The peer cannot be reached or started.
    Unreachable,
    /// The time was up.
    TimedOut,
    /// The peer does not reply to an ordinary call, or never makes one.
    Protocol,
}

impl CheckError {
    pub(crate) fn new(kind: CheckErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, dialogue: Vec::new() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(CheckErrorKind::Usage, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the hint if the message contains `sign`.
    pub(crate) fn hint_where(self, sign: &str, hint: &str) -> Self {
        if self.message.contains(sign) { self.hint(hint) } else { self }
    }

    pub(crate) fn with_kind(self, kind: CheckErrorKind) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn with_dialogue(self, dialogue: Vec<DialogueLine>) -> Self {
        Self { dialogue, ..self }
    }

    pub(crate) fn about(mut self, subject: &str) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> CheckErrorKind {
        self.kind
    }

    /// Returns the remedy, if there is one.
    pub fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the messages that led to the error, if they explain it.
    pub fn dialogue(&self) -> &[DialogueLine] {
        &self.dialogue
    }
}
