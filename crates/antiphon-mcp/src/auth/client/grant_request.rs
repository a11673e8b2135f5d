//! One run of a grant: registration, the step of the user, and the token request.

use super::assertion::{self, EnterpriseManaged};
use super::authorization_code::AuthorizationRequest;
use super::authorization_target::AuthorizationTarget;
use super::client_authentication::RegisteredClient;
use super::flow_settings::FlowSettings;
use super::registration::ObtainedClient;
use super::token_endpoint::{IssuedToken, TokenEndpoint};
use super::{Grant, OAuthError, PendingAuthorization, ServerMetadata};
use crate::auth::web_url::UrlRule;
use crate::auth::{Scopes, Secret};

impl FlowSettings {
    /// Runs the grant once. An error says whether the client was registered dynamically.
    pub(super) async fn attempt(
        &self,
        target: &AuthorizationTarget,
        scopes: &Scopes,
    ) -> Result<(RegisteredClient, IssuedToken), (OAuthError, bool)> {
        let fixed = |error| (error, false);
        let user = match &self.grant {
            Grant::AuthorizationCode(user) => {
                target.server.require_pkce().map_err(fixed)?;
                Some(user.prepare().await.map_err(|error| fixed(error.into()))?)
            }
            _ => None,
        };
        let redirect_uri = user.as_ref().map(|user| user.redirect_uri().to_owned());
        let cx = self.registration_context(&target.server);
        let registered = self.registration.obtain(&cx, redirect_uri.as_deref()).await;
        let ObtainedClient { client, is_dynamic } = registered.map_err(fixed)?;
        let issued = self.grant(target, &client, scopes, user).await;
        issued.map(|issued| (client, issued)).map_err(|error| (error, is_dynamic))
    }

    async fn grant(
        &self,
        target: &AuthorizationTarget,
        client: &RegisteredClient,
        scopes: &Scopes,
        user: Option<Box<dyn PendingAuthorization>>,
    ) -> Result<IssuedToken, OAuthError> {
        let AuthorizationTarget { server, resource, .. } = target;
        let mut form = match (&self.grant, user) {
            (Grant::AuthorizationCode(_), Some(user)) => {
                let rule = self.rule;
                let request = AuthorizationRequest { server, client, resource, scopes, rule };
                let form = request.run(user).await?;
                return self.endpoint(server, client).await?.request(form).await;
            }
            (Grant::Assertion(source), _) => {
                jwt_bearer(&assertion::provide(&**source, &server.issuer).await?)
            }
            (Grant::EnterpriseManaged(enterprise), _) => {
                jwt_bearer(&self.exchange_identity(enterprise, target, scopes).await?)
            }
            (Grant::ClientCredentials | Grant::AuthorizationCode(_), _) => {
                vec![("grant_type", "client_credentials".to_owned())]
            }
        };
        form.push(("resource", resource.clone()));
        if !scopes.is_empty() {
            form.push(("scope", scopes.to_string()));
        }
        self.endpoint(server, client).await?.request(form).await
    }

    /// Exchanges the identity token of the user for a grant at the identity provider (RFC 8693).
    async fn exchange_identity(
        &self,
        enterprise: &EnterpriseManaged,
        target: &AuthorizationTarget,
        scopes: &Scopes,
    ) -> Result<Secret, OAuthError> {
        let rule = UrlRule::Local;
        let url = rule.parse(&enterprise.token_endpoint)?;
        let identity = assertion::provide(&*enterprise.identity_token, url.as_str()).await?;
        let mut form = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange".to_owned()),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag".to_owned()),
            ("audience", target.server.issuer.clone()),
            ("resource", target.resource.clone()),
            ("subject_token", identity.expose().to_owned()),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token".to_owned()),
        ];
        if !scopes.is_empty() {
            form.push(("scope", scopes.to_string()));
        }
        let client = RegisteredClient {
            client_id: enterprise.client_id.clone(),
            authentication: enterprise.authentication.clone(),
        };
        let server = ServerMetadata { issuer: url.to_string(), ..ServerMetadata::default() };
        // The application has named this server.
        let fetch = &self.fetch.named_by(None);
        let endpoint = TokenEndpoint { server: &server, client: &client, fetch, rule, proof: None };
        Ok(endpoint.exchange(&url, form).await?.token)
    }
}

fn jwt_bearer(assertion: &Secret) -> Vec<(&'static str, String)> {
    vec![
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()),
        ("assertion", assertion.expose().to_owned()),
    ]
}
