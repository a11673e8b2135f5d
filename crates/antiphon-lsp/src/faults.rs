//! The reports of what an editor does wrong: where they are written, and how text of the editor is shown in them.
//!
//! Invariant: stderr gets at most two short lines per connection. A write to stderr blocks the connection if nobody
//! reads the pipe and it is full.

use std::io::{Write as _, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where faults of the editor are reported, in addition to the log.
#[derive(Clone, Debug)]
pub(crate) enum Faults {
    Log,
    /// Stderr, if the process has no subscriber for the log. The flag is set after the first message.
    Stderr(Arc<AtomicBool>),
}

impl Faults {
    /// Returns the faults of a connection that are also written to stderr.
    pub(crate) fn stderr() -> Self {
        Self::Stderr(Arc::default())
    }

    /// Reports a message that cannot be handled. Only the first one of a connection is written.
    pub(crate) fn report_message(&self, fault: &str) {
        match self {
            Self::Stderr(is_reported) if !is_reported.swap(true, Ordering::Relaxed) => {
                self.report_once(&format!(
                    "{fault} (further ones are not shown; install a `tracing` subscriber to see them)"
                ));
            }
            _ => {}
        }
    }

    /// Reports a fault that a connection can have only once.
    pub(crate) fn report_once(&self, fault: &str) {
        if matches!(self, Self::Stderr(_)) && !tracing::dispatcher::has_been_set() {
            // Ignores a failed write: the server goes on if its stderr is closed.
            let _ = writeln!(stderr(), "{fault}");
        }
    }
}

/// The maximum number of characters of an [`excerpt`].
const EXCERPT_CHARS: usize = 200;

/// Returns the beginning of a text of the editor on one line, with control characters escaped. `…` marks a text that
/// continues.
pub(crate) fn excerpt(text: &str) -> String {
    let escape = |c: char| match c {
        // Frequent in reasons, and readable as they are.
        '"' | '\'' => c.to_string(),
        other => other.escape_debug().to_string(),
    };
    // An escaped character is never shorter, so more characters than these are not needed.
    let escaped: String = text.chars().take(EXCERPT_CHARS + 1).map(escape).collect();
    if escaped.chars().count() <= EXCERPT_CHARS {
        return escaped;
    }
    escaped.chars().take(EXCERPT_CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_on_one_line() {
        assert_eq!(
            excerpt(r#"invalid type: string "x", a 'y'"#),
            r#"invalid type: string "x", a 'y'"#
        );
        assert_eq!(excerpt("a\nb\r\u{1b}[31m\u{202e}ü"), r"a\nb\r\u{1b}[31m\u{202e}ü");
        assert_eq!(excerpt(&"ü".repeat(200)), "ü".repeat(200));
        let long = excerpt(&"ü".repeat(1 << 20));
        assert_eq!((long.chars().count(), long.ends_with("ü…")), (200, true));
        assert_eq!(excerpt(&"\0".repeat(201)).chars().count(), 200);
    }
}
