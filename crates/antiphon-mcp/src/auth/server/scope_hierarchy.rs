//! Broad scopes that imply narrower ones.

use crate::auth::Scopes;

/// Broad scopes with the scopes that they imply.
#[derive(Clone, Debug, Default)]
pub(super) struct ScopeHierarchy(Vec<(String, Scopes)>);

impl ScopeHierarchy {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn imply(&mut self, broad: String, narrow: Scopes) {
        self.0.push((broad, narrow));
    }

    /// Returns the scopes, and those that they imply, directly or through each other.
    pub(super) fn expand(&self, granted: &Scopes) -> Scopes {
        let mut expanded = granted.clone();
        // Each pass that changes something applies at least one further rule.
        for _ in 0..self.0.len() {
            for (broad, narrow) in &self.0 {
                if expanded.contains(broad) {
                    expanded = expanded.union(narrow);
                }
            }
        }
        expanded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implied_scopes_imply_further_scopes() {
        let mut hierarchy = ScopeHierarchy::default();
        hierarchy.imply("write".to_owned(), ["read"].into());
        hierarchy.imply("admin".to_owned(), ["write", "delete"].into());
        hierarchy.imply("read".to_owned(), ["write"].into());
        assert_eq!(hierarchy.expand(&["admin"].into()).to_string(), "admin delete read write");
        assert_eq!(hierarchy.expand(&["delete"].into()).to_string(), "delete");
    }
}
