//! The token of a request.

use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

use super::OAuthError;
use super::proof_key::ProofKey;
use crate::auth::Secret;
use crate::auth::web_url::{WebUrlError, shortened};

pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The token of a request: a bearer token, or one that is bound to a key of the client (RFC 9449).
#[derive(Clone)]
pub struct AccessToken {
    token: Secret,
    proof_key: Option<Arc<ProofKey>>,
}

impl AccessToken {
    /// Creates a bearer token.
    pub fn bearer(token: Secret) -> Self {
        Self { token, proof_key: None }
    }

    pub(super) fn bound(token: Secret, proof_key: Arc<ProofKey>) -> Self {
        Self { token, proof_key: Some(proof_key) }
    }

    /// Returns the token itself, for [`Challenge::rejecting`](crate::auth::Challenge::rejecting).
    pub fn secret(&self) -> &Secret {
        &self.token
    }

    /// Whether the token is bound to a key of the client.
    pub fn is_bound(&self) -> bool {
        self.proof_key.is_some()
    }

    /// Sets the headers of one request. Call it for each request: a proof of possession is valid once.
    ///
    /// # Errors
    /// Fails if the URL is invalid, if the token has characters that a header cannot carry, or if the system has no
    /// randomness.
    pub fn authorize(
        &self,
        method: &Method,
        url: &str,
        headers: &mut HeaderMap,
    ) -> Result<(), OAuthError> {
        let scheme = match &self.proof_key {
            None => "Bearer",
            Some(key) => {
                let url = Url::parse(url).map_err(|_| WebUrlError::Invalid(shortened(url)))?;
                headers.insert(DPOP, sensitive(&key.proof(method, &url, Some(&self.token))?)?);
                "DPoP"
            }
        };
        let value = sensitive(&format!("{scheme} {}", self.token.expose()))?;
        headers.insert(AUTHORIZATION, value);
        Ok(())
    }
}

/// A header value that is not logged.
pub(super) fn sensitive(text: &str) -> Result<HeaderValue, OAuthError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| OAuthError::Unsendable)?;
    value.set_sensitive(true);
    Ok(value)
}

impl PartialEq for AccessToken {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.proof_key.is_some() { "DPoP" } else { "Bearer" };
        f.debug_struct("AccessToken").field("scheme", &scheme).finish_non_exhaustive()
    }
}
