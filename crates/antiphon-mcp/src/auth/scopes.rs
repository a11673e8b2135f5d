//! A set of OAuth scopes.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of OAuth scopes. Its text form separates them with spaces (RFC 6749, section 3.3).
///
/// ```
/// use antiphon_mcp::auth::Scopes;
///
/// let granted = Scopes::parse("files:read files:write");
/// assert!(granted.contains_all(&Scopes::from(["files:read"])));
/// assert_eq!(granted.union(&Scopes::parse("admin")).to_string(), "admin files:read files:write");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scopes(BTreeSet<String>);

impl Scopes {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses scopes that are separated with white space.
    pub fn parse(text: &str) -> Self {
        Self(text.split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the set contains this scope.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// Whether the set contains every scope of another set.
    pub fn contains_all(&self, required: &Self) -> bool {
        required.0.is_subset(&self.0)
    }

    /// Returns the scopes of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    /// Adds a scope.
    pub fn insert(&mut self, scope: impl Into<String>) {
        self.0.insert(scope.into());
    }

    /// Returns the scopes in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<S: Into<String>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Self {
        Self(scopes.into_iter().map(Into::into).collect())
    }
}

impl<S: Into<String>, const N: usize> From<[S; N]> for Scopes {
    fn from(scopes: [S; N]) -> Self {
        scopes.into_iter().collect()
    }
}

impl From<&[&str]> for Scopes {
    fn from(scopes: &[&str]) -> Self {
        scopes.iter().copied().collect()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}

/// As the Array of the metadata documents.
impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeSet::deserialize(deserializer).map(Self)
    }
}
