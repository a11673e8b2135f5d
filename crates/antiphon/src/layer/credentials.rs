//! What somebody shows, and who that is.

use std::any::Any;
use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderValue;

/// Who calls.
///
/// A handler finds it by [`Context::identity`](crate::Context::identity). It is cheap to clone.
///
/// ```
/// use antiphon::Identity;
///
/// struct Roles(Vec<&'static str>);
///
/// let ada = Identity::new("ada").with(Roles(vec!["admin"]));
/// assert_eq!(ada.name(), "ada");
/// assert_eq!(ada.get::<Roles>().unwrap().0, ["admin"]);
/// ```
#[derive(Clone)]
pub struct Identity {
    name: Arc<str>,
    facts: Option<Arc<dyn Any + Send + Sync>>,
}

impl Identity {
    /// Somebody of this name. Two of one name are the same to a rate limit.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), facts: None }
    }

    /// With what else is known, such as roles or the claims of a token.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, facts: T) -> Self {
        self.facts = Some(Arc::new(facts));
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What else is known, if it is of this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.facts.as_ref()?.downcast_ref()
    }
}

impl From<&str> for Identity {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Identity {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.name).finish()
    }
}

/// What somebody shows to be let in. It prints without its secrets.
#[derive(Clone)]
#[non_exhaustive]
pub enum Credentials {
    /// A token (RFC 6750).
    Bearer(String),
    /// A name and a password (RFC 7617).
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
}

impl Credentials {
    /// Those of an `Authorization` header; `None` where it has none that are known here.
    pub fn of_header(value: &HeaderValue) -> Option<Self> {
        let (scheme, rest) = value.to_str().ok()?.trim().split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self::Bearer(rest.to_owned()));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let text = String::from_utf8(BASE64.decode(rest).ok()?).ok()?;
        let (user, password) = text.split_once(':')?;
        Some(Self::Basic { user: user.to_owned(), password: password.to_owned() })
    }

    /// Whether they are the same; how long that takes tells only how long they are.
    pub fn is(&self, known: &Self) -> bool {
        match (self, known) {
            (Self::Bearer(shown), Self::Bearer(known)) => is_same(shown, known),
            (
                Self::Basic { user: shown, password: shown_password },
                Self::Basic { user: known, password: known_password },
            ) => is_same(shown, known) & is_same(shown_password, known_password),
            _ => false,
        }
    }
}

/// As [`Credentials::is`], so that `==` tells no more by its time.
impl PartialEq for Credentials {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}

impl Eq for Credentials {}

/// Compares every byte, whatever the first ones are.
fn is_same(shown: &str, known: &str) -> bool {
    let (shown, known) = (shown.as_bytes(), known.as_bytes());
    let differences = shown.iter().zip(known).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    shown.len() == known.len() && differences == 0
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer(_) => f.write_str("Bearer(..)"),
            Self::Basic { user, .. } => {
                f.debug_struct("Basic").field("user", user).finish_non_exhaustive()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Credentials> {
        Credentials::of_header(&HeaderValue::from_str(text).unwrap())
    }

    fn basic(user: &str, password: &str) -> Credentials {
        Credentials::Basic { user: user.to_owned(), password: password.to_owned() }
    }

    #[test]
    fn headers_are_read_as_the_rfcs_have_them() {
        assert_eq!(read("Bearer abc.def"), Some(Credentials::Bearer("abc.def".to_owned())));
        assert_eq!(read("bearer  x"), Some(Credentials::Bearer("x".to_owned())));
        assert_eq!(read("Basic YWRhOmE6Yg=="), Some(basic("ada", "a:b")));
        for text in ["", "Bearer", "Digest x", "Basic !", "Basic YWRh", "abc"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_same_is_the_same_and_nothing_else_is() {
        let known = Credentials::Bearer("secret".to_owned());
        for (shown, same) in
            [("secret", true), ("secreT", false), ("secre", false), ("secret2", false), ("", false)]
        {
            assert_eq!(Credentials::Bearer(shown.to_owned()).is(&known), same, "{shown}");
        }
        assert!(basic("ada", "x").is(&basic("ada", "x")));
        assert!(!basic("ada", "x").is(&basic("bob", "x")));
        assert!(!basic("ada", "x").is(&basic("ada", "y")));
        assert!(!basic("ada", "x").is(&known));
    }

    #[test]
    fn secrets_are_not_printed() {
        let shown = format!("{:?}", [basic("ada", "hush"), Credentials::Bearer("hush".to_owned())]);
        assert!(shown.contains("ada") && !shown.contains("hush"), "{shown}");
    }
}
