//! Patterns of method names.

/// A set of patterns, in which `*` stands for any characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns(Vec<String>);

impl Patterns {
    pub(super) fn extend<P: Into<String>>(&mut self, patterns: impl IntoIterator<Item = P>) {
        self.0.extend(patterns.into_iter().map(Into::into));
    }

    pub(super) fn match_any(&self, method: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, method))
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
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
