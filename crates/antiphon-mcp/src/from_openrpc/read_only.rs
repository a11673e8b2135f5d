//! Guesses from the name of a method whether it only reads.

/// The words that a method begins with that only reads.
const WORDS: &[&str] = &[
    "get", "list", "find", "search", "describe", "count", "query", "read", "is", "has", "estimate",
];

/// Whether the name of a method begins with a word of reading, after its namespace.
///
/// The namespace ends with the last `.`, `/` or `:`. Without one of them, the text before a single `_` is a namespace
/// too: `eth_getBalance`, but not `todo_list_clear`.
pub(super) fn is_guessed(method: &str) -> bool {
    let name = method.rsplit(['.', '/', ':']).next().unwrap_or(method);
    let in_namespace = name.split_once('_').filter(|(_, rest)| !rest.contains('_'));
    begins_with_word(name) || in_namespace.is_some_and(|(_, rest)| begins_with_word(rest))
}

fn begins_with_word(name: &str) -> bool {
    WORDS.iter().any(|word| {
        let first = name.get(..word.len());
        let is_word = first.is_some_and(|first| first.eq_ignore_ascii_case(word));
        // The word ends where another one begins.
        is_word && name[word.len()..].chars().next().is_none_or(|next| !next.is_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_after_the_namespace_counts() {
        for (method, expected) in [
            ("getBalance", true),
            ("get_data", true),
            ("GetBalance", true),
            ("eth_getBalance", true),
            ("accounts.list", true),
            ("todo_list", true),
            ("todo_list_clear", false),
            ("getaway", false),
            ("eth_sendTransaction", false),
            ("issue", false),
            ("widget", false),
            ("", false),
        ] {
            assert_eq!(is_guessed(method), expected, "{method}");
        }
    }
}
