//! Where a client gets its access token from.
//!
//! The client asks before each HTTP request, and again after the server has refused one. It never stores a token.

use std::fmt;

use antiphon::http::header::AUTHORIZATION;
use antiphon::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use antiphon::{BoxFuture, Cause};

/// The header with the nonce for proofs of possession (RFC 9449, section 8).
pub(crate) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// A source of access tokens.
///
/// Only HTTP has tokens. A String is a source of one fixed token.
pub trait Credentials: Send + Sync + 'static {
    /// Returns the token of the next request; `None` to send none.
    ///
    /// `refused` is `None` before a request. After the status 401 or 403 it describes the refusal. Return a
    /// new token, which may take as long as a login of the user, or `None` to give up. The client repeats a
    /// request at most twice. The timeouts of all calls stand still meanwhile, so the source sets its own limits.
    ///
    /// # Errors
    /// Fails if there is no way to get a token. The call then fails with the same cause.
    fn token<'a>(
        &'a self,
        refused: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<String>, Cause>>;

    /// Adds a token of this source to the headers of one request, by default as `Authorization: Bearer`.
    ///
    /// A source whose tokens are bound to a key adds a proof for this method and URL instead (RFC 9449).
    ///
    /// # Errors
    /// Fails if the token cannot be sent. The call then fails with the same cause.
    fn authorize(
        &self,
        token: &str,
        method: &Method,
        url: &Uri,
        headers: &mut HeaderMap,
    ) -> Result<(), Cause> {
        let _ = (method, url);
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value =
            value.map_err(|_| Cause::new("the token has characters that a header cannot carry"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        Ok(())
    }
}

/// The reason why a server has refused a request.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Refusal<'a> {
    /// The status: 401 or 403.
    pub status: u16,
    /// The header `WWW-Authenticate`, or an empty text.
    pub challenge: &'a str,
    /// The token that was refused.
    pub token: Option<&'a str>,
    /// The header `DPoP-Nonce`: what the server requires in proofs of possession.
    pub dpop_nonce: Option<&'a str>,
}

impl<'a> Refusal<'a> {
    /// Creates a refusal, for tests of a source.
    pub fn new(status: u16, challenge: &'a str, token: Option<&'a str>) -> Self {
        Self { status, challenge, token, dpop_nonce: None }
    }

    /// Sets the nonce.
    #[must_use]
    pub fn with_dpop_nonce(mut self, nonce: &'a str) -> Self {
        self.dpop_nonce = Some(nonce);
        self
    }
}

/// Omits the token.
impl fmt::Debug for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("status", &self.status)
            .field("challenge", &self.challenge)
            .finish_non_exhaustive()
    }
}

/// One token, which cannot be renewed.
impl Credentials for String {
    fn token<'a>(
        &'a self,
        refused: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<String>, Cause>> {
        let token = refused.is_none().then(|| self.clone());
        Box::pin(std::future::ready(Ok(token)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_does_not_show_its_token() {
        let refusal = Refusal::new(401, "Bearer", Some("s3cret")).with_dpop_nonce("n0nce");
        let shown = format!("{refusal:?}");
        assert_eq!(shown, r#"Refusal { status: 401, challenge: "Bearer", .. }"#);
    }
}
