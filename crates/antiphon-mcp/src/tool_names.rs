//! The names that tools may have (2025-11-25, tools, "Tool Names"), and patterns of names.

/// The longest name of a tool.
pub(crate) const MAX_LENGTH: usize = 128;

/// Whether a tool may have this name.
pub(crate) fn is_valid(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// Whether the name of a tool may have this character.
pub(crate) fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

/// A set of patterns, in which `*` stands for any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Patterns(Vec<String>);

impl Patterns {
    pub(crate) fn extend<P: Into<String>>(&mut self, patterns: impl IntoIterator<Item = P>) {
        self.0.extend(patterns.into_iter().map(Into::into));
    }

    pub(crate) fn match_any(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, name))
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_form() {
        assert!(is_valid("a.b-c_D1") && is_valid(&"a".repeat(MAX_LENGTH)));
        for name in ["", "a b", "ä", &"a".repeat(MAX_LENGTH + 1)] {
            assert!(!is_valid(name), "{name}");
        }
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("get", "get", true),
            ("get", "getAll", false),
            ("get*", "getAll", true),
            ("get*", "get", true),
            ("*get*", "eth_getBalance", true),
            ("eth_*Balance", "eth_getBalance", true),
            ("eth_*Balance", "eth_getBalances", false),
            ("*", "", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("a*c*e", "abde", false),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
