//! What a token store keeps: the token for each MCP server, and the registration with each authorization server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::authorization_target::AuthorizationTarget;
use super::client_authentication::{BASIC, NONE, POST, RegisteredClient};
use super::token_endpoint::IssuedToken;
use super::{ClientAuthentication, OAuthError, TokenStore};
use crate::auth::{Scopes, Secret};

/// A token for an MCP server. It is bound to the issuer and the client that obtained it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SavedToken {
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) resource: String,
    pub(super) token: Secret,
    pub(super) refresh_token: Option<Secret>,
    /// In seconds since 1970.
    pub(super) expires_at: Option<u64>,
    /// Whether the token is bound to the proof key.
    #[serde(default)]
    pub(super) is_bound: bool,
    /// All scopes that were requested so far.
    pub(super) requested: Scopes,
}

/// The registration of this client with an authorization server (RFC 7591).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SavedRegistration {
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) secret: Option<Secret>,
    pub(super) method: String,
    pub(super) redirect_uri: String,
    /// When the secret expires, in seconds since 1970.
    pub(super) expires_at: Option<u64>,
}

impl SavedToken {
    pub(super) fn new(
        target: &AuthorizationTarget,
        client_id: String,
        requested: Scopes,
        issued: &IssuedToken,
    ) -> Self {
        Self {
            issuer: target.server.issuer.clone(),
            client_id,
            resource: target.resource.clone(),
            token: issued.token.clone(),
            refresh_token: issued.refresh_token.clone(),
            expires_at: None,
            is_bound: issued.is_bound,
            requested,
        }
    }

    pub(super) fn expiring(mut self, at: Option<SystemTime>) -> Self {
        self.expires_at =
            at.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs());
        self
    }

    /// Whether the token can be used for this much longer.
    pub(super) fn lasts(&self, rest: Duration) -> bool {
        self.expires_at.is_none_or(|end| is_after(end, SystemTime::now() + rest))
    }
}

impl SavedRegistration {
    /// Whether the registration can be used with this redirect URI.
    pub(super) fn fits(&self, redirect_uri: &str) -> bool {
        self.redirect_uri == redirect_uri && self.is_current()
    }

    pub(super) fn is_current(&self) -> bool {
        self.expires_at.is_none_or(|end| is_after(end, SystemTime::now()))
    }

    pub(super) fn client(&self) -> RegisteredClient {
        let authentication = match (&self.secret, &*self.method) {
            (Some(secret), BASIC) => ClientAuthentication::SecretBasic(secret.clone()),
            (Some(secret), POST) => ClientAuthentication::SecretPost(secret.clone()),
            (None, _) | (_, NONE) => ClientAuthentication::None,
            (Some(secret), _) => ClientAuthentication::Secret(secret.clone()),
        };
        RegisteredClient { client_id: self.client_id.clone(), authentication }
    }
}

fn is_after(seconds: u64, time: SystemTime) -> bool {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).is_none_or(|end| end > time)
}

pub(super) fn token_key(server: &str) -> String {
    format!("token {server}")
}

pub(super) fn proof_key_key(server: &str) -> String {
    format!("proof key {server}")
}

pub(super) fn registration_key(issuer: &str) -> String {
    format!("registration {issuer}")
}

/// Loads a record. A record that cannot be read counts as absent.
pub(super) async fn load<T: DeserializeOwned>(
    store: &dyn TokenStore,
    key: &str,
) -> Result<Option<T>, OAuthError> {
    let Some(text) = store.load(key).await? else { return Ok(None) };
    let record = serde_json::from_str(text.expose());
    if record.is_err() {
        tracing::warn!("a record of the token store is unreadable and is ignored");
    }
    Ok(record.ok())
}

/// Saves a record.
pub(super) async fn save<T: Serialize>(
    store: &dyn TokenStore,
    key: &str,
    record: &T,
) -> Result<(), OAuthError> {
    let text = serde_json::to_string(record).map_err(|_| OAuthError::Interrupted)?;
    Ok(store.save(key, &Secret::new(text)).await?)
}
