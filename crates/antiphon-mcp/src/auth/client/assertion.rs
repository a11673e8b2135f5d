//! Grants with an assertion of another system (RFC 7523, RFC 8693).

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use antiphon::BoxFuture;
use http::HeaderValue;

use super::{ClientAuthentication, OAuthError};
use crate::auth::Secret;

/// Provides assertions, such as the token of a workload or of a single sign-on.
pub trait AssertionSource: Send + Sync {
    /// Returns an assertion for this audience: the issuer of an authorization server.
    ///
    /// # Errors
    /// Fails if there is no assertion.
    fn assertion<'a>(
        &'a self,
        audience: &'a str,
    ) -> BoxFuture<'a, Result<Secret, Box<dyn Error + Send + Sync>>>;
}

/// An assertion that never changes.
impl AssertionSource for Secret {
    fn assertion<'a>(
        &'a self,
        _audience: &'a str,
    ) -> BoxFuture<'a, Result<Secret, Box<dyn Error + Send + Sync>>> {
        Box::pin(async { Ok(self.clone()) })
    }
}

/// The single sign-on of an enterprise, whose identity provider decides which MCP servers its users may use.
///
/// The identity provider exchanges the identity token of the user for a grant (RFC 8693), which the authorization
/// server of the MCP server exchanges for an access token (RFC 7523).
#[derive(Clone)]
pub struct EnterpriseManaged {
    pub(super) token_endpoint: String,
    pub(super) client_id: String,
    pub(super) authentication: ClientAuthentication,
    pub(super) identity_token: Arc<dyn AssertionSource>,
}

impl EnterpriseManaged {
    /// Uses the token endpoint of an identity provider, as a client with this id there. The source provides the identity
    /// token of the user.
    pub fn new(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        identity_token: impl AssertionSource + 'static,
    ) -> Self {
        Self {
            token_endpoint: token_endpoint.into(),
            client_id: client_id.into(),
            authentication: ClientAuthentication::None,
            identity_token: Arc::new(identity_token),
        }
    }

    /// Sets how the client authenticates to the identity provider.
    #[must_use]
    pub fn authentication(mut self, authentication: ClientAuthentication) -> Self {
        self.authentication = authentication;
        self
    }
}

impl fmt::Debug for EnterpriseManaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterpriseManaged")
            .field("token_endpoint", &self.token_endpoint)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// Asks a source for an assertion.
pub(super) async fn provide(
    source: &dyn AssertionSource,
    audience: &str,
) -> Result<Secret, OAuthError> {
    let failed = |source| OAuthError::Assertion { audience: audience.to_owned(), source };
    let assertion = source.assertion(audience).await.map_err(failed)?;
    // A secret with line breaks is most likely a file that was read with its last line break.
    match HeaderValue::from_str(assertion.expose().trim_end()) {
        Ok(_) => Ok(Secret::new(assertion.expose().trim_end())),
        Err(error) => Err(failed(error.into())),
    }
}
