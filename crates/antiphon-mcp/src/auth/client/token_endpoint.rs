//! The token request of every grant (RFC 6749, section 3.2).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Method, Request, Response, StatusCode};
use oauth2::basic::{BasicErrorResponse, BasicTokenType};
use oauth2::{ExtraTokenFields, StandardTokenResponse, TokenResponse as _};
use serde::{Deserialize, Serialize};
use url::Url;

use super::access_token::{DPOP, sensitive};
use super::client_authentication::RegisteredClient;
use super::proof_key::ProofKey;
use super::{OAuthError, ServerMetadata};
use crate::auth::http_fetch::{form_request, named, parse_json};
use crate::auth::web_url::{UrlRule, shortened};
use crate::auth::{FetchError, HttpFetch, Secret};
use crate::client::credentials::DPOP_NONCE;

/// A token endpoint, and the client that uses it.
pub(super) struct TokenEndpoint<'a> {
    pub(super) server: &'a ServerMetadata,
    pub(super) client: &'a RegisteredClient,
    pub(super) fetch: &'a HttpFetch,
    pub(super) rule: UrlRule,
    /// The key that the token is bound to, if it is.
    pub(super) proof: Option<&'a Arc<ProofKey>>,
}

/// An issued token.
#[derive(Debug)]
pub(super) struct IssuedToken {
    pub(super) token: Secret,
    pub(super) refresh_token: Option<Secret>,
    pub(super) expires_at: Option<SystemTime>,
    /// Whether the token is bound to the proof key.
    pub(super) is_bound: bool,
    is_bearer: bool,
}

/// The member that token exchange adds (RFC 8693, section 2.2.1).
#[derive(Debug, Serialize, Deserialize)]
struct TokenExchangeFields {
    #[serde(default)]
    issued_token_type: Option<String>,
}

impl ExtraTokenFields for TokenExchangeFields {}

type TokenResponse = StandardTokenResponse<TokenExchangeFields, BasicTokenType>;

/// The longest lifetime that is believed. It keeps the time in the range of clocks.
const MAX_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

impl TokenEndpoint<'_> {
    /// Requests an access token. The first member of the form is the grant type.
    pub(super) async fn request(
        &self,
        form: Vec<(&'static str, String)>,
    ) -> Result<IssuedToken, OAuthError> {
        let url = self.server.token_url(self.rule)?;
        let issued = self.exchange(&url, form).await?;
        match (issued.is_bearer, issued.is_bound, self.proof) {
            (true, _, None) | (_, true, Some(_)) => Ok(issued),
            (_, _, None) => Err(unusable(&url, "it is not a Bearer token")),
            (_, _, Some(_)) => Err(unusable(&url, "it is not bound to the key of this client")),
        }
    }

    /// Requests a token of any kind.
    pub(super) async fn exchange(
        &self,
        url: &Url,
        mut form: Vec<(&'static str, String)>,
    ) -> Result<IssuedToken, OAuthError> {
        let header = self.client.authenticate(self.server, &mut form)?;
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, &**value)).collect();
        let mut request = form_request(&form);
        if let Some(header) = header {
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        let response = self.send(url, request).await?;
        if response.status() != StatusCode::OK {
            return Err(refusal(url, response.status(), response.body()));
        }
        let response: TokenResponse = parse_json(url, response.body())?;
        issued(&response).ok_or_else(|| unusable(url, "it contains no token"))
    }

    /// Sends a request, with a proof if the token will be bound. Repeats it once with the nonce that the server requires
    /// (RFC 9449, section 8).
    async fn send(
        &self,
        url: &Url,
        mut request: Request<Bytes>,
    ) -> Result<Response<Bytes>, OAuthError> {
        let Some(key) = self.proof else {
            return Ok(self.fetch.send(url, self.rule, request).await?);
        };
        request.headers_mut().insert(DPOP, sensitive(&key.proof(&Method::POST, url, None)?)?);
        let response = self.fetch.send(url, self.rule, request.clone()).await?;
        let nonce = response.headers().get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok());
        let is_new = nonce.is_some_and(|nonce| key.set_nonce(url, nonce));
        if !is_new || response.status() != StatusCode::BAD_REQUEST {
            return Ok(response);
        }
        request.headers_mut().insert(DPOP, sensitive(&key.proof(&Method::POST, url, None)?)?);
        Ok(self.fetch.send(url, self.rule, request).await?)
    }
}

fn issued(response: &TokenResponse) -> Option<IssuedToken> {
    let token = response.access_token().secret();
    // A header cannot carry other characters.
    let is_sendable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let expires_in = response.expires_in().map(|lifetime| lifetime.min(MAX_LIFETIME));
    is_sendable.then(|| IssuedToken {
        token: Secret::new(token.clone()),
        refresh_token: response.refresh_token().map(|token| Secret::new(token.secret().clone())),
        expires_at: expires_in.map(|lifetime| SystemTime::now() + lifetime),
        is_bound: is_named(response.token_type(), "dpop"),
        is_bearer: *response.token_type() == BasicTokenType::Bearer,
    })
}

/// Whether a token type of an extension has this name.
fn is_named(kind: &BasicTokenType, name: &str) -> bool {
    matches!(kind, BasicTokenType::Extension(kind) if kind.eq_ignore_ascii_case(name))
}

/// Reads the error of a token response (RFC 6749, section 5.2).
fn refusal(url: &Url, status: StatusCode, body: &[u8]) -> OAuthError {
    match serde_json::from_slice::<BasicErrorResponse>(body) {
        Ok(error) => OAuthError::TokenRefused {
            url: named(url),
            error: shortened(error.error().as_ref()),
            description: error.error_description().map(|text| shortened(text)),
        },
        Err(_) => FetchError::Status { url: named(url), status }.into(),
    }
}

fn unusable(url: &Url, reason: &str) -> OAuthError {
    OAuthError::TokenResponse { url: named(url), reason: reason.to_owned() }
}
