//! The settings of an [`OAuthClient`].

use std::sync::Arc;

use tokio::sync::OnceCell;

use super::flow_settings::FlowSettings;
use super::registration::{ClientRegistration, PreRegisteredClient};
use super::{Grant, MemoryTokenStore, OAuthClient, OAuthError, TokenStore};
use crate::auth::web_url::{UrlRule, WebUrlError, shortened};
use crate::auth::{HttpFetch, Scopes, SigningKey};

/// The settings of an [`OAuthClient`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct OAuthClientBuilder {
    server: String,
    grant: Grant,
    registration: ClientRegistration,
    store: Arc<dyn TokenStore>,
    fetch: HttpFetch,
    scopes: Option<Scopes>,
    offline_access: bool,
    legacy: bool,
    proof_of_possession: bool,
}

impl OAuthClientBuilder {
    pub(super) fn new(server: String, grant: Grant) -> Self {
        Self {
            server,
            grant,
            registration: ClientRegistration::default(),
            store: Arc::new(MemoryTokenStore::new()),
            fetch: HttpFetch::new(),
            scopes: None,
            offline_access: true,
            legacy: true,
            proof_of_possession: false,
        }
    }

    /// Sets the name that users see when they authorize the client.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.registration.client_name = Some(name.into());
        self
    }

    /// Uses this URL as the client id, where the authorization server supports it. The application publishes the metadata
    /// document of the client there.
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.registration.metadata_url = Some(url.into());
        self
    }

    /// Authenticates the client of [`client_metadata_url`](Self::client_metadata_url) with this key. Its public part must
    /// be in the metadata document.
    pub fn client_metadata_key(mut self, key: SigningKey) -> Self {
        self.registration.metadata_key = Some(key);
        self
    }

    /// Adds the credentials of a client that an operator has registered. They have priority. If none fits the
    /// authorization server, the client fails instead of registering.
    pub fn pre_registered(mut self, client: PreRegisteredClient) -> Self {
        self.registration.pre_registered.push(client);
        self
    }

    /// Keeps tokens and registrations in this store. By default, they are kept in memory.
    pub fn store(mut self, store: impl TokenStore + 'static) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Sets the HTTP settings.
    pub fn fetch(mut self, fetch: HttpFetch) -> Self {
        self.fetch = fetch;
        self
    }

    /// Requests these scopes if a challenge names none. By default, the scopes that the MCP server publishes.
    pub fn scopes(mut self, scopes: impl Into<Scopes>) -> Self {
        self.scopes = Some(scopes.into());
        self
    }

    /// Sets whether to request `offline_access` if the authorization server supports it, so that users rarely have to log
    /// in. The default is true.
    pub fn offline_access(mut self, request: bool) -> Self {
        self.offline_access = request;
        self
    }

    /// Sets whether to support servers of the revision 2025-03-26, which publish no resource metadata. The default is true.
    pub fn legacy_discovery(mut self, support: bool) -> Self {
        self.legacy = support;
        self
    }

    /// Sets whether tokens are bound to a key of this client, where the authorization server supports it (RFC 9449). A
    /// stolen token is then useless. The default is false: the extension of MCP is a draft.
    pub fn proof_of_possession(mut self, bind: bool) -> Self {
        self.proof_of_possession = bind;
        self
    }

    /// Creates the client. It sends nothing before a server requires a token.
    ///
    /// # Errors
    /// Fails if a URL is refused.
    pub fn build(self) -> Result<OAuthClient, OAuthError> {
        let server = UrlRule::Local.parse(&self.server)?;
        if let Some(url) = &self.registration.metadata_url {
            check_metadata_url(url)?;
        }
        Ok(OAuthClient::with(FlowSettings {
            rule: UrlRule::of(&server),
            fetch: self.fetch.named_by(Some(&server)),
            server,
            grant: self.grant,
            registration: self.registration,
            store: self.store,
            scopes: self.scopes,
            offline_access: self.offline_access,
            legacy: self.legacy,
            proof: self.proof_of_possession.then(OnceCell::new),
        }))
    }
}

/// A client id must be an `https` URL with a path (MCP, "Client ID Metadata Documents").
fn check_metadata_url(url: &str) -> Result<(), WebUrlError> {
    let parsed = UrlRule::Remote.parse(url)?;
    if parsed.path() == "/" { Err(WebUrlError::Invalid(shortened(url))) } else { Ok(()) }
}
