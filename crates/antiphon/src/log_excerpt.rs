//! Excerpts of text from a peer that are safe to log.

/// Returns at most 64 characters of a text, escaped so that they fit on one line.
pub(crate) fn log_excerpt(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).take(64).collect()
}
