//! The verification of tokens that are JWTs (RFC 9068).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use antiphon::BoxFuture;
use http::request::Parts;

use super::token_claims::ClaimRules;
use super::{Access, RemoteKeys, TokenError, TokenVerifier};
use crate::auth::jwt::{SignedToken, SignedTokenError};
use crate::auth::{JwkSet, JwsAlgorithm, Secret};

/// Verifies tokens that are JWTs: signature, issuer, audience and times.
///
/// By default, every [`JwsAlgorithm`] is accepted, and times may differ by 60 seconds. `none` and HMAC are never
/// accepted.
///
/// ```
/// use antiphon_mcp::auth::JwsAlgorithm;
/// use antiphon_mcp::auth::server::{JwtVerifier, RemoteKeys};
/// use std::time::Duration;
///
/// let keys = RemoteKeys::new("https://auth.example/jwks.json")?;
/// let verifier = JwtVerifier::new("https://auth.example", "https://mcp.example/mcp", keys)
///     .algorithms([JwsAlgorithm::ES256])
///     .leeway(Duration::from_secs(5));
/// # Ok::<(), antiphon_mcp::auth::WebUrlError>(())
/// ```
#[derive(Clone, Debug)]
pub struct JwtVerifier {
    rules: ClaimRules,
    algorithms: Vec<JwsAlgorithm>,
    keys: VerificationKeys,
}

/// Where the public keys of an authorization server come from: a [`JwkSet`], or [`RemoteKeys`].
#[derive(Clone, Debug)]
pub struct VerificationKeys(KeySource);

#[derive(Clone, Debug)]
enum KeySource {
    Fixed(Arc<JwkSet>),
    Remote(Box<RemoteKeys>),
}

impl From<JwkSet> for VerificationKeys {
    fn from(keys: JwkSet) -> Self {
        Self(KeySource::Fixed(Arc::new(keys)))
    }
}

impl From<RemoteKeys> for VerificationKeys {
    fn from(keys: RemoteKeys) -> Self {
        Self(KeySource::Remote(Box::new(keys)))
    }
}

impl JwtVerifier {
    /// Accepts the tokens of this issuer for this audience: the canonical URI of the MCP server.
    pub fn new(
        issuer: impl Into<String>,
        audience: impl Into<String>,
        keys: impl Into<VerificationKeys>,
    ) -> Self {
        let rules = ClaimRules {
            issuer: issuer.into(),
            audiences: vec![audience.into()],
            leeway: Duration::from_secs(60),
        };
        Self { rules, algorithms: JwsAlgorithm::ALL.to_vec(), keys: keys.into() }
    }

    /// Also accepts tokens for this audience, for authorization servers that do not support resource indicators. The
    /// audience must name this server only.
    #[must_use]
    pub fn also_audience(mut self, audience: impl Into<String>) -> Self {
        self.rules.audiences.push(audience.into());
        self
    }

    /// Accepts only these algorithms.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = JwsAlgorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Sets by how much the clocks of the servers may differ.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.rules.leeway = leeway;
        self
    }

    async fn check(&self, token: &str) -> Result<Access, TokenError> {
        let token = SignedToken::parse(token).map_err(refused)?;
        if !self.algorithms.contains(&token.algorithm()) {
            return Err(refused(SignedTokenError::Algorithm));
        }
        check_kind(token.kind())?;
        let keys = self.keys_for(&token).await?;
        let claims = token.verify(&keys).map_err(refused)?;
        self.rules.check(claims, SystemTime::now())
    }

    async fn keys_for(&self, token: &SignedToken<'_>) -> Result<Arc<JwkSet>, TokenError> {
        match &self.keys.0 {
            KeySource::Fixed(keys) => Ok(keys.clone()),
            KeySource::Remote(keys) => {
                let keys = keys.with(|keys| token.has_candidate(keys)).await;
                keys.map_err(|error| TokenError::unavailable(error.to_string()))
            }
        }
    }
}

fn refused(reason: SignedTokenError) -> TokenError {
    TokenError::invalid(reason.to_string())
}

/// Refuses JWTs that are made for another purpose (RFC 8725, section 3.11).
fn check_kind(kind: Option<&str>) -> Result<(), TokenError> {
    match kind {
        None => Ok(()),
        Some(kind) if kind.eq_ignore_ascii_case("jwt") || kind.eq_ignore_ascii_case("at+jwt") => {
            Ok(())
        }
        Some(_) => Err(TokenError::invalid("the token is not an access token")),
    }
}

impl TokenVerifier for JwtVerifier {
    fn verify<'a>(
        &'a self,
        token: &'a Secret,
        _request: &'a Parts,
    ) -> BoxFuture<'a, Result<Access, TokenError>> {
        Box::pin(self.check(token.expose()))
    }
}
