//! A token, a password or another secret text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A token, a password or another secret text. The `Debug` output omits it.
///
/// ```
/// use antiphon_mcp::auth::Secret;
///
/// let token = Secret::new("eyJhbGciOi");
/// assert_eq!(format!("{token:?}"), "Secret(..)");
/// assert_eq!(token.expose(), "eyJhbGciOi");
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text. Do not log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
