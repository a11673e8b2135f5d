//! Excerpts of text from a peer that are safe to log and to put into an error.

/// Returns at most 64 characters of a text, escaped so that they fit on one line.
pub(crate) fn log_excerpt(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).take(64).collect()
}

/// The maximum number of characters of [`message_excerpt`].
const MESSAGE_CHARS: usize = 80;

/// Returns the beginning of a message: at most 80 characters, on one line. `…` marks a message that
/// continues.
pub(crate) fn message_excerpt(message: &[u8]) -> String {
    // A character has at most four bytes.
    let beginning = &message[..message.len().min(4 * MESSAGE_CHARS)];
    let text = String::from_utf8_lossy(beginning);
    let escape = |c: char| match c {
        // Frequent in what is no JSON, and readable as they are.
        '"' | '\'' => c.to_string(),
        other => other.escape_debug().to_string(),
    };
    let escaped: String = text.trim_end().chars().map(escape).collect();
    if escaped.chars().count() <= MESSAGE_CHARS && beginning.len() == message.len() {
        return escaped;
    }
    escaped.chars().take(MESSAGE_CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excerpt_of_a_message_is_short_and_on_one_line() {
        assert_eq!(message_excerpt(b"INFO \"up\"\tnow\n\0\n"), "INFO \"up\"\\tnow\\n\\0");
        assert_eq!(message_excerpt(b""), "");
        for message in ["x".repeat(500), "é".repeat(500), "\u{1F600}".repeat(500), "\0".repeat(500)]
        {
            let excerpt = message_excerpt(message.as_bytes());
            assert!(
                excerpt.chars().count() == MESSAGE_CHARS && excerpt.ends_with('…'),
                "{excerpt}"
            );
            assert!(!excerpt.contains('\u{FFFD}'), "{excerpt}");
        }
        assert_eq!(message_excerpt(&[0x1f, 0x8b, 8]), "\\u{1f}\u{FFFD}\\u{8}");
    }
}
