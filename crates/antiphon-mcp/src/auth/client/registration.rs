//! The registration of the client with an authorization server.
//!
//! In the order of the specification: credentials that the user has configured, the URL of the client's metadata as its
//! id, dynamic registration (RFC 7591), and else an error with the remedy.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::client_authentication::{BASIC, NONE, POST, RegisteredClient};
use super::saved_credentials::{self, SavedRegistration, registration_key};
use super::{ClientAuthentication, OAuthError, ServerMetadata, TokenStore};
use crate::auth::http_fetch::{named, parse_json, post};
use crate::auth::web_url::{UrlRule, is_loopback, shortened};
use crate::auth::{FetchError, HttpFetch, Secret};

/// A client that an operator has registered with an authorization server.
///
/// ```
/// use antiphon_mcp::auth::Secret;
/// use antiphon_mcp::auth::client::PreRegisteredClient;
///
/// let client = PreRegisteredClient::new("my-client")
///     .secret(Secret::new("s3cret"))
///     .issuer("https://auth.example");
/// ```
#[derive(Clone, Debug)]
pub struct PreRegisteredClient {
    issuer: Option<String>,
    client: RegisteredClient,
}

impl PreRegisteredClient {
    /// Creates a public client with this id.
    pub fn new(client_id: impl Into<String>) -> Self {
        let authentication = ClientAuthentication::None;
        let client = RegisteredClient { client_id: client_id.into(), authentication };
        Self { issuer: None, client }
    }

    /// Sets the secret.
    #[must_use]
    pub fn secret(self, secret: Secret) -> Self {
        self.authentication(ClientAuthentication::Secret(secret))
    }

    /// Sets how the client authenticates.
    #[must_use]
    pub fn authentication(mut self, authentication: ClientAuthentication) -> Self {
        self.client.authentication = authentication;
        self
    }

    /// Sets the authorization server that the client is registered with. Without it, the credentials are bound to the
    /// first authorization server that they are used with.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }
}

/// How this client registers.
#[derive(Debug, Default)]
pub(super) struct ClientRegistration {
    pub(super) client_name: Option<String>,
    pub(super) metadata_url: Option<String>,
    pub(super) metadata_key: Option<crate::auth::SigningKey>,
    pub(super) pre_registered: Vec<PreRegisteredClient>,
    /// The issuer that credentials without an issuer are bound to.
    bound_issuer: Mutex<Option<String>>,
}

/// What a registration needs besides its rules.
pub(super) struct RegistrationContext<'a> {
    pub(super) server: &'a ServerMetadata,
    pub(super) store: &'a dyn TokenStore,
    pub(super) fetch: &'a HttpFetch,
    pub(super) rule: UrlRule,
}

/// A client id, and whether it comes from dynamic registration.
pub(super) struct ObtainedClient {
    pub(super) client: RegisteredClient,
    pub(super) is_dynamic: bool,
}

#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<Secret>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

#[derive(Deserialize)]
struct RegistrationError {
    error: String,
    error_description: Option<String>,
}

impl ClientRegistration {
    /// Chooses one of the authorization servers of an MCP server: one that the client is registered with, or else the
    /// first.
    pub(super) fn choose<'a>(&self, issuers: &'a [String]) -> Result<&'a str, OAuthError> {
        let found = || issuers.join(", ");
        if self.pre_registered.is_empty() {
            let first =
                issuers.first().ok_or_else(|| OAuthError::NoAuthorizationServer(found()))?;
            return Ok(first);
        }
        let mut bound = self.bound_issuer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ours = |issuer: &&String| {
            self.pre_registered.iter().any(|client| match client.issuer.as_ref() {
                Some(own) => own == *issuer,
                None => bound.as_ref().is_none_or(|bound| bound == *issuer),
            })
        };
        let Some(issuer) = issuers.iter().find(is_ours) else {
            let named = self.pre_registered.iter().filter_map(|client| client.issuer.clone());
            let known: Vec<String> = named.chain(bound.clone()).collect();
            return Err(OAuthError::OtherIssuer { known: known.join(", "), found: found() });
        };
        bound.get_or_insert_with(|| issuer.clone());
        Ok(issuer)
    }

    /// Binds credentials without an issuer to the one that they were used with before, unless they are bound.
    pub(super) fn bind(&self, issuer: &str) {
        let mut bound = self.bound_issuer.lock().unwrap_or_else(PoisonError::into_inner);
        bound.get_or_insert_with(|| issuer.to_owned());
    }

    /// Returns the client id for a server, without a registration.
    pub(super) async fn known(
        &self,
        cx: &RegistrationContext<'_>,
    ) -> Result<Option<RegisteredClient>, OAuthError> {
        if let Some(client) = self.static_client(cx.server) {
            return Ok(Some(client));
        }
        let saved = self.saved(cx).await?.filter(SavedRegistration::is_current);
        Ok(saved.map(|saved| saved.client()))
    }

    /// Returns the client id for a server. Registers the client if necessary and possible.
    pub(super) async fn obtain(
        &self,
        cx: &RegistrationContext<'_>,
        redirect_uri: Option<&str>,
    ) -> Result<ObtainedClient, OAuthError> {
        if let Some(client) = self.static_client(cx.server) {
            return Ok(ObtainedClient { client, is_dynamic: false });
        }
        let not_registered = || OAuthError::NotRegistered { issuer: cx.server.issuer.clone() };
        let redirect_uri = redirect_uri.ok_or_else(not_registered)?;
        if let Some(saved) = self.saved(cx).await?.filter(|saved| saved.fits(redirect_uri)) {
            return Ok(ObtainedClient { client: saved.client(), is_dynamic: true });
        }
        let url = cx.server.registration_endpoint.as_ref().ok_or_else(not_registered)?;
        let url = cx.rule.parse(url)?;
        let saved = self.register(cx, &url, redirect_uri).await?;
        saved_credentials::save(cx.store, &registration_key(&cx.server.issuer), &saved).await?;
        Ok(ObtainedClient { client: saved.client(), is_dynamic: true })
    }

    /// Configured credentials, or the URL of the metadata document.
    fn static_client(&self, server: &ServerMetadata) -> Option<RegisteredClient> {
        let bound = self.bound_issuer.lock().unwrap_or_else(PoisonError::into_inner);
        let pre_registered = self.pre_registered.iter().find(|client| {
            let issuer = client.issuer.as_ref().or(bound.as_ref());
            issuer.is_none_or(|issuer| *issuer == server.issuer)
        });
        if let Some(pre_registered) = pre_registered {
            return Some(pre_registered.client.clone());
        }
        let url = self.metadata_url.clone()?;
        let authentication = match &self.metadata_key {
            Some(key) => ClientAuthentication::PrivateKeyJwt(key.clone()),
            None => ClientAuthentication::None,
        };
        server
            .client_id_metadata_document_supported
            .then_some(RegisteredClient { client_id: url, authentication })
    }

    async fn saved(
        &self,
        cx: &RegistrationContext<'_>,
    ) -> Result<Option<SavedRegistration>, OAuthError> {
        let key = registration_key(&cx.server.issuer);
        let saved: Option<SavedRegistration> = saved_credentials::load(cx.store, &key).await?;
        Ok(saved.filter(|saved| saved.issuer == cx.server.issuer))
    }

    async fn register(
        &self,
        cx: &RegistrationContext<'_>,
        url: &Url,
        redirect_uri: &str,
    ) -> Result<SavedRegistration, OAuthError> {
        let method = auth_method(cx.server);
        let body = self.metadata(redirect_uri, method).to_string();
        let request = post(Bytes::from(body), "application/json");
        let response = cx.fetch.send(url, cx.rule, request).await?;
        if !matches!(response.status(), StatusCode::CREATED | StatusCode::OK) {
            return Err(refusal(url, response.status(), response.body()));
        }
        let answer: RegistrationResponse = parse_json(url, response.body())?;
        // Without a statement of the server, a secret is sent as the server supports it.
        let fallback =
            || if answer.client_secret.is_some() { String::new() } else { method.to_owned() };
        Ok(SavedRegistration {
            issuer: cx.server.issuer.clone(),
            client_id: answer.client_id,
            method: answer.token_endpoint_auth_method.unwrap_or_else(fallback),
            secret: answer.client_secret,
            redirect_uri: redirect_uri.to_owned(),
            expires_at: answer.client_secret_expires_at.filter(|end| *end > 0),
        })
    }

    /// The metadata of the client (RFC 7591, section 2).
    fn metadata(&self, redirect_uri: &str, method: &str) -> serde_json::Value {
        // OpenID Connect Registration, section 2: the default is "web", which forbids loopback addresses.
        let is_native = Url::parse(redirect_uri).is_ok_and(|url| is_loopback(&url));
        let mut metadata = json!({
            "client_name": self.client_name.as_deref().unwrap_or("antiphon-mcp"),
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": if is_native { "native" } else { "web" },
        });
        if let (Some(url), Some(metadata)) = (&self.metadata_url, metadata.as_object_mut()) {
            metadata.insert("client_uri".to_owned(), json!(url));
        }
        metadata
    }
}

/// Chooses how the client authenticates. A program on the machine of a user cannot keep a secret, so none is preferred.
fn auth_method(server: &ServerMetadata) -> &'static str {
    let Some(methods) = &server.token_endpoint_auth_methods_supported else { return BASIC };
    let is_supported = |name: &&'static str| methods.iter().any(|method| method == name);
    [NONE, BASIC, POST].into_iter().find(is_supported).unwrap_or(NONE)
}

fn refusal(url: &Url, status: StatusCode, body: &[u8]) -> OAuthError {
    match serde_json::from_slice::<RegistrationError>(body) {
        Ok(RegistrationError { error, error_description }) => {
            let description = error_description.map(|text| format!(" ({})", shortened(&text)));
            let error = format!("{}{}", shortened(&error), description.unwrap_or_default());
            OAuthError::RegistrationRefused { url: named(url), error }
        }
        Err(_) => FetchError::Status { url: named(url), status }.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(clients: &[(&str, Option<&str>)]) -> ClientRegistration {
        let client = |(id, issuer): &(&str, Option<&str>)| PreRegisteredClient {
            issuer: issuer.map(str::to_owned),
            ..PreRegisteredClient::new(*id)
        };
        ClientRegistration {
            pre_registered: clients.iter().map(client).collect(),
            ..ClientRegistration::default()
        }
    }

    #[test]
    fn a_server_with_known_credentials_is_preferred() {
        let issuers = ["https://a.example".to_owned(), "https://b.example".to_owned()];
        assert_eq!(with(&[]).choose(&issuers).unwrap(), "https://a.example");
        let known = with(&[("x", Some("https://b.example"))]);
        assert_eq!(known.choose(&issuers).unwrap(), "https://b.example");
        let error = known.choose(&issuers[..1]).unwrap_err();
        assert!(matches!(error, OAuthError::OtherIssuer { .. }), "{error}");
    }

    #[test]
    fn credentials_without_an_issuer_are_bound_to_the_first() {
        let known = with(&[("x", None)]);
        let [a, b] = ["https://a.example".to_owned(), "https://b.example".to_owned()];
        assert_eq!(known.choose(std::slice::from_ref(&a)).unwrap(), a);
        assert!(known.choose(std::slice::from_ref(&b)).is_err());
        assert_eq!(known.choose(&[b, a.clone()]).unwrap(), a);
    }

    #[test]
    fn the_application_type_follows_the_redirect_uri() {
        let kind = |uri| with(&[]).metadata(uri, NONE)["application_type"].clone();
        assert_eq!(kind("http://127.0.0.1:4000/callback"), "native");
        assert_eq!(kind("https://app.example/callback"), "web");
    }
}
