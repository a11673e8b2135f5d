//! The names of an upstream's tools and prompts at the bridge: which are offered, and how they are called.

use std::collections::BTreeMap;

use crate::tool_names::{self, Patterns};

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
    allowed: Option<Patterns>,
    denied: Patterns,
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
        self.allowed.get_or_insert_default().extend(patterns);
        self
    }

    /// Does not offer names that match one of these patterns, even if they are allowed.
    #[must_use]
    pub fn deny(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.denied.extend(patterns);
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
        let is_allowed = self.allowed.as_ref().is_none_or(|allowed| allowed.match_any(name));
        if !is_allowed || self.denied.match_any(name) {
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
        match tool_names::is_valid(name) {
            true => Ok(()),
            false => Err(InvalidName(name.chars().take(tool_names::MAX_LENGTH).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_name_is_not_offered() {
        let rules = NameRules::default().allow(["*"]).deny(["delete_*"]);
        assert_eq!(rules.offered("delete_all"), None);
        assert_eq!(rules.offered("read").as_deref(), Some("read"));
    }
}
