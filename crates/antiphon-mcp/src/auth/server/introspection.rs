//! The verification of tokens by their authorization server (RFC 7662).

use std::fmt;
use std::time::{Duration, SystemTime};

use antiphon::BoxFuture;
use antiphon::layer::Credentials;
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;
use serde_json::{Map, Value};
use url::Url;

use super::token_claims::{ClaimRules, access};
use super::{Access, TokenError, TokenVerifier};
use crate::auth::http_fetch::{form_request, parse_json};
use crate::auth::web_url::UrlRule;
use crate::auth::{FetchError, HttpFetch, Secret, WebUrlError};

/// Verifies tokens with the introspection endpoint of their authorization server. Each request costs one exchange, so
/// use it with [`Authorization::cache`](super::Authorization::cache).
///
/// A response without the audience of this server is refused, because the token may be for another server.
#[derive(Clone)]
pub struct Introspection {
    url: Url,
    client: Credentials,
    rules: ClaimRules,
    fetch: HttpFetch,
}

impl Introspection {
    /// Asks this endpoint, as a client with this id and secret. The audience is the canonical URI of the MCP server.
    ///
    /// # Errors
    /// Fails if the URL is neither `https` nor on a loopback address.
    pub fn new(
        url: &str,
        client_id: &str,
        client_secret: &Secret,
        audience: impl Into<String>,
    ) -> Result<Self, WebUrlError> {
        let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let (user, password) = (encode(client_id), encode(client_secret.expose()));
        let rules = ClaimRules {
            issuer: String::new(),
            audiences: vec![audience.into()],
            leeway: Duration::from_secs(60),
        };
        Ok(Self {
            url: UrlRule::Local.parse(url)?,
            client: Credentials::Basic { user, password },
            rules,
            fetch: HttpFetch::new().timeout(Duration::from_secs(5)),
        })
    }

    /// Sets the HTTP settings.
    #[must_use]
    pub fn fetch(mut self, fetch: HttpFetch) -> Self {
        self.fetch = fetch;
        self
    }

    async fn check(&self, token: &str) -> Result<Access, TokenError> {
        let claims =
            self.ask(token).await.map_err(|error| TokenError::unavailable(error.to_string()))?;
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err(TokenError::invalid("the token is not active"));
        }
        self.rules.check_audience(&claims)?;
        if !claims.contains_key("exp") {
            return Ok(access(claims));
        }
        let expires_at = self.rules.check_times(&claims, SystemTime::now())?;
        Ok(access(claims).with_expires_at(expires_at))
    }

    async fn ask(&self, token: &str) -> Result<Map<String, Value>, FetchError> {
        let mut request = form_request(&[("token", token), ("token_type_hint", "access_token")]);
        if let Ok(client) = self.client.to_header() {
            request.headers_mut().insert(AUTHORIZATION, client);
        }
        let response = self.fetch.send(&self.url, UrlRule::of(&self.url), request).await?;
        if response.status() != StatusCode::OK {
            let (url, status) = (self.url.to_string(), response.status());
            return Err(FetchError::Status { url, status });
        }
        parse_json(&self.url, response.body())
    }
}

impl TokenVerifier for Introspection {
    fn verify<'a>(
        &'a self,
        token: &'a Secret,
        _request: &'a Parts,
    ) -> BoxFuture<'a, Result<Access, TokenError>> {
        Box::pin(self.check(token.expose()))
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}
