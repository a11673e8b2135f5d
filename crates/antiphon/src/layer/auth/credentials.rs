//! The credentials of a caller, and their comparison.

use std::fmt;
use std::hint::black_box;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{AUTHORIZATION, InvalidHeaderValue};
use http::{HeaderMap, HeaderValue};

/// The credentials of a caller. The `Debug` output omits secrets.
///
/// ```
/// use antiphon::http::HeaderValue;
/// use antiphon::layer::Credentials;
///
/// let header = HeaderValue::from_static("Bearer s3cret");
/// let credentials = Credentials::of_header(&header).expect("a bearer token");
/// assert!(credentials.is(&Credentials::Bearer("s3cret".to_owned())));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum Credentials {
    /// A bearer token (RFC 6750).
    Bearer(String),
    /// A user name and a password (RFC 7617).
    Basic {
        /// The user name.
        user: String,
        /// The password.
        password: String,
    },
}

impl Credentials {
    /// Parses an `Authorization` header. Returns `None` for an unknown scheme or a malformed value.
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

    /// Returns the credentials of a request, or the reason why it has none. Several headers are rejected, because a
    /// proxy in front of the server may have checked a different one.
    pub(crate) fn of_request(headers: &HeaderMap) -> Result<Self, &'static str> {
        let mut headers = headers.get_all(AUTHORIZATION).iter();
        match (headers.next(), headers.next()) {
            (_, Some(_)) => Err("there are several `Authorization` headers; send one"),
            (None, None) => Err("credentials are missing"),
            (Some(header), None) => Self::of_header(header)
                .ok_or("the `Authorization` header is invalid; send Bearer or Basic credentials"),
        }
    }

    /// Returns the value of the `Authorization` header. It is marked as sensitive, so it is not logged.
    ///
    /// # Errors
    /// Fails if a bearer token has a character that a header cannot carry.
    ///
    /// ```
    /// use antiphon::layer::Credentials;
    ///
    /// let basic = Credentials::Basic { user: "ada".to_owned(), password: "hush".to_owned() };
    /// assert_eq!(basic.to_header().unwrap(), "Basic YWRhOmh1c2g=");
    /// ```
    pub fn to_header(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        let text = match self {
            Self::Bearer(token) => format!("Bearer {token}"),
            Self::Basic { user, password } => {
                format!("Basic {}", BASE64.encode(format!("{user}:{password}")))
            }
        };
        let mut value = HeaderValue::try_from(text)?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Whether these are the known credentials. The time that it takes depends only on their lengths.
    pub fn is(&self, known: &Self) -> bool {
        match (self, known) {
            (Self::Bearer(token), Self::Bearer(known)) => is_same(token, known),
            (
                Self::Basic { user, password },
                Self::Basic { user: known_user, password: known_password },
            ) => is_same(user, known_user) & is_same(password, known_password),
            _ => false,
        }
    }
}

/// Compares like [`Credentials::is`], so that the run time of `==` does not reveal more.
impl PartialEq for Credentials {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}

impl Eq for Credentials {}

/// Compares every byte, even after a difference.
fn is_same(text: &str, known: &str) -> bool {
    let (text, known) = (text.as_bytes(), known.as_bytes());
    let differences = text.iter().zip(known).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    text.len() == known.len() && differences == 0
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
    fn headers_are_parsed_by_the_rfcs() {
        assert_eq!(read("Bearer abc.def"), Some(Credentials::Bearer("abc.def".to_owned())));
        assert_eq!(read("bearer  x"), Some(Credentials::Bearer("x".to_owned())));
        assert_eq!(read("Basic YWRhOmE6Yg=="), Some(basic("ada", "a:b")));
        for text in ["", "Bearer", "Digest x", "Basic !", "Basic YWRh", "abc"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn only_equal_credentials_are_equal() {
        let known = Credentials::Bearer("secret".to_owned());
        for (token, same) in
            [("secret", true), ("secreT", false), ("secre", false), ("secret2", false), ("", false)]
        {
            assert_eq!(Credentials::Bearer(token.to_owned()).is(&known), same, "{token}");
        }
        assert!(basic("ada", "x").is(&basic("ada", "x")));
        assert!(!basic("ada", "x").is(&basic("bob", "x")));
        assert!(!basic("ada", "x").is(&basic("ada", "y")));
        assert!(!basic("ada", "x").is(&known));
    }

    #[test]
    fn secrets_are_not_printed() {
        let text = format!("{:?}", [basic("ada", "hush"), Credentials::Bearer("hush".to_owned())]);
        assert!(text.contains("ada") && !text.contains("hush"), "{text}");
    }
}
