//! The metadata of an authorization server (RFC 8414; OpenID Connect Discovery 1.0).

use serde::Deserialize;
use url::Url;

use super::{OAuthError, proof_key};
use crate::auth::web_url::{UrlRule, origin, shortened, well_known};
use crate::auth::{FetchError, HttpFetch, Scopes};

/// The metadata of an authorization server, as far as clients need it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// The identifier of the server.
    pub issuer: String,
    /// Where users authorize clients.
    pub authorization_endpoint: Option<String>,
    /// Where clients obtain tokens.
    pub token_endpoint: Option<String>,
    /// Where clients register (RFC 7591).
    pub registration_endpoint: Option<String>,
    /// The scopes of the server.
    pub scopes_supported: Option<Scopes>,
    /// The PKCE methods. Without them, the server does not support PKCE.
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// How clients authenticate at the token endpoint.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The algorithms for proofs of possession (RFC 9449).
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether the id of a client may be the URL of its metadata.
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    /// Whether authorization responses name the issuer (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

impl ServerMetadata {
    /// Fetches the metadata of an issuer. Tries the URLs in the order of the specification.
    pub(super) async fn discover(
        issuer: &str,
        fetch: &HttpFetch,
        rule: UrlRule,
    ) -> Result<Self, OAuthError> {
        let url = rule.parse(issuer)?;
        let mut reasons = Vec::new();
        for candidate in candidates(&url) {
            match fetch.json::<Self>(&rule.parse(&candidate)?, rule).await {
                // RFC 8414, section 3.3: the issuers must be identical, character by character.
                Ok(metadata) if metadata.issuer == issuer => return Ok(metadata),
                Ok(metadata) => reasons.push(format!(
                    "{candidate} is the metadata of {:?}",
                    shortened(&metadata.issuer)
                )),
                Err(error @ (FetchError::Status { .. } | FetchError::Json { .. })) => {
                    reasons.push(error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        let reason = reasons.join("; ");
        Err(OAuthError::ServerMetadata { issuer: issuer.to_owned(), reason })
    }

    /// The metadata of a server that implements the revision 2025-03-26: published at the origin of the MCP server, or
    /// else the default endpoints there.
    pub(super) async fn legacy(
        server: &Url,
        fetch: &HttpFetch,
        rule: UrlRule,
    ) -> Result<Self, OAuthError> {
        let origin = origin(server);
        let url = format!("{origin}/.well-known/oauth-authorization-server");
        match fetch.json::<Self>(&rule.parse(&url)?, rule).await {
            Ok(metadata) if metadata.issuer.trim_end_matches('/') == origin => Ok(metadata),
            Ok(metadata) => Err(OAuthError::ServerMetadata {
                reason: format!("{url} is the metadata of {:?}", shortened(&metadata.issuer)),
                issuer: origin,
            }),
            Err(error) if error.is_absent() => Ok(Self {
                authorization_endpoint: Some(format!("{origin}/authorize")),
                token_endpoint: Some(format!("{origin}/token")),
                registration_endpoint: Some(format!("{origin}/register")),
                // That revision requires PKCE of every server.
                code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
                issuer: origin,
                ..Self::default()
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the server binds tokens to keys of the kind that this client has.
    pub(super) fn supports_proofs(&self) -> bool {
        let algorithms = self.dpop_signing_alg_values_supported.iter().flatten();
        algorithms.into_iter().any(|algorithm| algorithm == proof_key::ALGORITHM)
    }

    /// Fails unless the server supports PKCE with S256 (MCP, "Authorization Code Protection").
    pub(super) fn require_pkce(&self) -> Result<(), OAuthError> {
        let methods = self.code_challenge_methods_supported.iter().flatten();
        if methods.into_iter().any(|method| method == "S256") {
            return Ok(());
        }
        Err(self.lacks("PKCE with S256 (code_challenge_methods_supported)"))
    }

    pub(super) fn authorization_url(&self, rule: UrlRule) -> Result<Url, OAuthError> {
        self.endpoint(self.authorization_endpoint.as_ref(), "authorization_endpoint", rule)
    }

    pub(super) fn token_url(&self, rule: UrlRule) -> Result<Url, OAuthError> {
        self.endpoint(self.token_endpoint.as_ref(), "token_endpoint", rule)
    }

    fn endpoint(&self, url: Option<&String>, name: &str, rule: UrlRule) -> Result<Url, OAuthError> {
        Ok(rule.parse(url.ok_or_else(|| self.lacks(name))?)?)
    }

    pub(super) fn lacks(&self, capability: &str) -> OAuthError {
        OAuthError::Unsupported { issuer: self.issuer.clone(), capability: capability.to_owned() }
    }
}

/// The well-known URLs of an issuer, in the order of the specification.
fn candidates(issuer: &Url) -> Vec<String> {
    const OAUTH: &str = "oauth-authorization-server";
    const OPENID: &str = "openid-configuration";
    let path = issuer.path().trim_end_matches('/');
    let mut candidates = vec![well_known(issuer, OAUTH), well_known(issuer, OPENID)];
    if !path.is_empty() {
        candidates.push(format!("{}{path}/.well-known/{OPENID}", origin(issuer)));
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_well_known_urls_follow_the_specification() {
        let of = |url: &str| candidates(&Url::parse(url).unwrap());
        assert_eq!(
            of("https://a.example/t1"),
            [
                "https://a.example/.well-known/oauth-authorization-server/t1",
                "https://a.example/.well-known/openid-configuration/t1",
                "https://a.example/t1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            of("https://a.example/"),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn a_server_without_s256_is_refused() {
        let with = |methods: Option<&[&str]>| ServerMetadata {
            code_challenge_methods_supported: methods
                .map(|methods| methods.iter().map(|method| (*method).to_owned()).collect()),
            ..ServerMetadata::default()
        };
        assert!(with(Some(&["plain", "S256"])).require_pkce().is_ok());
        assert!(with(Some(&["plain"])).require_pkce().is_err());
        assert!(with(None).require_pkce().is_err());
    }
}
