//! The settings of a client, which do not change.

use std::sync::Arc;

use tokio::sync::OnceCell;
use url::Url;

use super::client_authentication::RegisteredClient;
use super::proof_key::ProofKey;
use super::registration::{ClientRegistration, RegistrationContext};
use super::saved_credentials::{SavedToken, proof_key_key};
use super::token_endpoint::TokenEndpoint;
use super::{AccessToken, Grant, OAuthError, ServerMetadata, TokenStore};
use crate::auth::web_url::{UrlRule, shortened};
use crate::auth::{HttpFetch, Scopes};

/// The settings of a client.
pub(super) struct FlowSettings {
    pub(super) server: Url,
    pub(super) rule: UrlRule,
    pub(super) grant: Grant,
    pub(super) registration: ClientRegistration,
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) fetch: HttpFetch,
    pub(super) scopes: Option<Scopes>,
    pub(super) offline_access: bool,
    pub(super) legacy: bool,
    /// The key that tokens are bound to, if they are; created on first use.
    pub(super) proof: Option<OnceCell<Arc<ProofKey>>>,
}

impl FlowSettings {
    /// The URL of the MCP server as its canonical URI: without a slash at the end of an empty path.
    pub(super) fn canonical_uri(&self) -> String {
        let text = self.server.as_str();
        match self.server.path() {
            "/" if self.server.query().is_none() => text.trim_end_matches('/').to_owned(),
            _ => text.to_owned(),
        }
    }

    /// A token is only for the server that it was obtained for (MCP, "Access Token Usage").
    pub(super) fn check_server(&self, url: &str) -> Result<(), OAuthError> {
        let is_ours = Url::parse(url).is_ok_and(|url| url.origin() == self.server.origin());
        let (server, url) = (self.server.to_string(), shortened(url));
        if is_ours { Ok(()) } else { Err(OAuthError::OtherServer { server, url }) }
    }

    pub(super) async fn endpoint<'a>(
        &'a self,
        server: &'a ServerMetadata,
        client: &'a RegisteredClient,
    ) -> Result<TokenEndpoint<'a>, OAuthError> {
        let proof = if server.supports_proofs() { self.proof_key().await? } else { None };
        Ok(TokenEndpoint { server, client, fetch: &self.fetch, rule: self.rule, proof })
    }

    /// Returns the key that tokens are bound to, if they are.
    pub(super) async fn proof_key(&self) -> Result<Option<&Arc<ProofKey>>, OAuthError> {
        let Some(cell) = &self.proof else { return Ok(None) };
        cell.get_or_try_init(|| self.load_proof_key()).await.map(Some)
    }

    async fn load_proof_key(&self) -> Result<Arc<ProofKey>, OAuthError> {
        let name = proof_key_key(self.server.as_str());
        let saved = self.store.load(&name).await?;
        if let Some(key) = saved.as_ref().and_then(ProofKey::restore) {
            return Ok(Arc::new(key));
        }
        let (key, saved) = ProofKey::generate()?;
        self.store.save(&name, &saved).await?;
        Ok(Arc::new(key))
    }

    /// Returns a saved token as requests carry it. The proof key has been loaded.
    pub(super) fn access_token(&self, saved: &SavedToken) -> AccessToken {
        let key = self.proof.as_ref().and_then(OnceCell::get).filter(|_| saved.is_bound);
        match key {
            Some(key) => AccessToken::bound(saved.token.clone(), key.clone()),
            None => AccessToken::bearer(saved.token.clone()),
        }
    }

    pub(super) fn registration_context<'a>(
        &'a self,
        server: &'a ServerMetadata,
    ) -> RegistrationContext<'a> {
        let FlowSettings { store, fetch, rule, .. } = self;
        RegistrationContext { server, store: &**store, fetch, rule: *rule }
    }
}
