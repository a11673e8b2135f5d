//! The names of an upstream's tools and prompts at the bridge: which are offered, and how they are called.

use std::collections::BTreeMap;

/// The longest name of a tool.
const MAX_NAME: usize = 128;

/// Which names of an upstream are offered, and under which names.
///
/// ```
/// use antiphon_mcp::bridge::NameRules;
///
/// let rules = NameRules::default().allow(["read_*"]).rename("read_file", "read").prefix("fs_");
/// assert_eq!(rules.offered("read_file").as_deref(), Some("fs_read"));
/// assert_eq!(rules.offered("read_all").as_deref(), Some("fs_read_all"));
/// assert_eq!(rules.offered("write_file"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameRules {
    prefix: String,
    allowed: Option<Vec<String>>,
    denied: Vec<String>,
    renamed: BTreeMap<String, String>,
}

/// A name that no tool can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name of a tool: use 1 to 128 letters, digits, `_`, `-` and `.`")]
pub struct InvalidName(String);

impl NameRules {
    /// Puts a text in front of each name.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Offers only names that match one of these patterns, in which `*` stands for any text. A second call adds to the
    /// first.
    #[must_use]
    pub fn allow(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let patterns = patterns.into_iter().map(Into::into);
        self.allowed.get_or_insert_default().extend(patterns);
        self
    }

    /// Does not offer names that match one of these patterns, even if they are allowed.
    #[must_use]
    pub fn deny(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.denied.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Offers a name under another one. The prefix is put in front of it.
    #[must_use]
    pub fn rename(mut self, name: impl Into<String>, other: impl Into<String>) -> Self {
        self.renamed.insert(name.into(), other.into());
        self
    }

    /// Returns the name at the bridge of a name at the upstream; `None` if it is not offered.
    pub fn offered(&self, name: &str) -> Option<String> {
        let matches = |patterns: &[String]| patterns.iter().any(|pattern| is_match(pattern, name));
        let is_allowed = self.allowed.as_deref().is_none_or(matches);
        if !is_allowed || matches(&self.denied) {
            return None;
        }
        let renamed = self.renamed.get(name).map_or(name, String::as_str);
        Some(format!("{}{renamed}", self.prefix))
    }

    /// Returns the name at the bridge, unless it is one that clients refuse.
    pub(super) fn valid(&self, name: &str) -> Option<String> {
        let offered = self.offered(name)?;
        match Self::check(&offered) {
            Ok(()) => Some(offered),
            Err(error) => {
                tracing::warn!(%error, "a name is left out");
                None
            }
        }
    }

    /// Checks that a name is one that clients accept.
    ///
    /// # Errors
    /// Fails if it is too long or has other characters.
    pub fn check(name: &str) -> Result<(), InvalidName> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        match (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_valid) {
            true => Ok(()),
            false => Err(InvalidName(name.chars().take(MAX_NAME).collect())),
        }
    }
}

/// Whether a name matches a pattern, in which `*` stands for any text.
fn is_match(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("*", "", true),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(is_match(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_denied_name_is_not_offered() {
        let rules = NameRules::default().allow(["*"]).deny(["delete_*"]);
        assert_eq!(rules.offered("delete_all"), None);
        assert_eq!(rules.offered("read").as_deref(), Some("read"));
    }

    #[test]
    fn names_have_a_form() {
        assert!(NameRules::check("a.b-c_D1").is_ok());
        for name in ["", "a b", "ä", &"a".repeat(129)] {
            assert!(NameRules::check(name).is_err(), "{name}");
        }
    }
}
