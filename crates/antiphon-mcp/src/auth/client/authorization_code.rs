//! The authorization code grant with PKCE (OAuth 2.1, section 4.1).

use oauth2::basic::BasicClient;
use oauth2::{
    AuthUrl, ClientId, CsrfToken, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope,
};

use super::authorization_response;
use super::client_authentication::RegisteredClient;
use super::{OAuthError, PendingAuthorization, ServerMetadata};
use crate::auth::Scopes;
use crate::auth::web_url::{UrlRule, WebUrlError, shortened};

/// One authorization request.
pub(super) struct AuthorizationRequest<'a> {
    pub(super) server: &'a ServerMetadata,
    pub(super) client: &'a RegisteredClient,
    pub(super) resource: &'a str,
    pub(super) scopes: &'a Scopes,
    pub(super) rule: UrlRule,
}

/// What must be kept until the response.
struct RequestRecord {
    url: String,
    state: CsrfToken,
    verifier: PkceCodeVerifier,
}

impl AuthorizationRequest<'_> {
    /// Asks the user, and returns the form of the token request.
    pub(super) async fn run(
        &self,
        user: Box<dyn PendingAuthorization>,
    ) -> Result<Vec<(&'static str, String)>, OAuthError> {
        self.server.require_pkce()?;
        let redirect_uri = user.redirect_uri().to_owned();
        let record = self.prepare(&redirect_uri)?;
        let response = user.authorize(record.url).await?;
        let code = authorization_response::code(&response, record.state.secret(), self.server)?;
        Ok(vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.expose().to_owned()),
            ("redirect_uri", redirect_uri),
            ("code_verifier", record.verifier.into_secret()),
            ("resource", self.resource.to_owned()),
        ])
    }

    fn prepare(&self, redirect_uri: &str) -> Result<RequestRecord, OAuthError> {
        // MCP, "Communication Security": a redirect uses TLS, or stays on this machine.
        UrlRule::Local.parse(redirect_uri)?;
        let redirect = RedirectUrl::new(redirect_uri.to_owned())
            .map_err(|_| WebUrlError::Invalid(shortened(redirect_uri)))?;
        let client = BasicClient::new(ClientId::new(self.client.client_id.clone()))
            .set_auth_uri(AuthUrl::from_url(self.server.authorization_url(self.rule)?))
            .set_redirect_uri(redirect);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let mut request = client
            .authorize_url(CsrfToken::new_random)
            .set_pkce_challenge(challenge)
            .add_scopes(self.scopes.iter().map(|scope| Scope::new(scope.to_owned())))
            .add_extra_param("resource", self.resource);
        // OpenID Connect Core, section 11: refresh tokens need the consent of the user.
        if self.scopes.contains("offline_access") {
            request = request.add_extra_param("prompt", "consent");
        }
        let (url, state) = request.url();
        Ok(RequestRecord { url: url.into(), state, verifier })
    }
}
