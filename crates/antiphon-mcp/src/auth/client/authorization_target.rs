//! What a client obtains a token for, and from whom.

use super::flow_settings::FlowSettings;
use super::{Grant, OAuthError, ServerMetadata, resource_discovery};
use crate::auth::{Challenge, Scopes};

/// What a client obtains a token for, and from whom.
#[derive(Clone, Debug)]
pub(super) struct AuthorizationTarget {
    /// The canonical URI of the MCP server, exactly as its metadata names it (RFC 8707).
    pub(super) resource: String,
    pub(super) server: ServerMetadata,
    /// The scopes for basic use of the MCP server.
    scopes_supported: Option<Scopes>,
}

impl AuthorizationTarget {
    /// Finds the authorization server of the MCP server. Nothing is cached: the MCP server may have moved to another
    /// one.
    pub(super) async fn discover(
        settings: &FlowSettings,
        challenge: &Challenge,
    ) -> Result<Self, OAuthError> {
        let FlowSettings { server, fetch, rule, .. } = settings;
        let Some(metadata) = resource_discovery::discover(server, challenge, fetch, *rule).await?
        else {
            return Self::legacy(settings).await;
        };
        let issuer = settings.registration.choose(&metadata.authorization_servers)?;
        Ok(Self {
            server: ServerMetadata::discover(issuer, fetch, *rule).await?,
            resource: metadata.resource,
            scopes_supported: metadata.scopes_supported,
        })
    }

    /// A server that implements the revision 2025-03-26.
    async fn legacy(settings: &FlowSettings) -> Result<Self, OAuthError> {
        let FlowSettings { server, fetch, rule, .. } = settings;
        if !settings.legacy {
            let tried = resource_discovery::candidates(server).join(", ");
            return Err(OAuthError::NoResourceMetadata { server: server.to_string(), tried });
        }
        let metadata = ServerMetadata::legacy(server, fetch, *rule).await?;
        settings.registration.choose(std::slice::from_ref(&metadata.issuer))?;
        let resource = settings.canonical_uri();
        Ok(Self { resource, server: metadata, scopes_supported: None })
    }

    /// The scopes to request (MCP, "Scope Selection Strategy"): those of the challenge, or else those that the server
    /// publishes, and always those that were requested before.
    pub(super) fn scopes(
        &self,
        settings: &FlowSettings,
        challenge: &Challenge,
        requested: Option<&Scopes>,
    ) -> Scopes {
        let challenged = challenge.scope.as_ref().filter(|scopes| !scopes.is_empty());
        let configured = settings.scopes.as_ref();
        let needed = challenged.or(configured).or(self.scopes_supported.as_ref());
        let mut scopes = needed.cloned().unwrap_or_default();
        if let Some(requested) = requested {
            scopes = scopes.union(requested);
        }
        if self.wants_offline_access(settings) && !scopes.is_empty() {
            scopes.insert(OFFLINE_ACCESS);
        }
        scopes
    }

    /// Only where the authorization server knows the scope. It gives refresh tokens.
    fn wants_offline_access(&self, settings: &FlowSettings) -> bool {
        let is_known =
            self.server.scopes_supported.as_ref().is_some_and(|all| all.contains(OFFLINE_ACCESS));
        settings.offline_access && is_known && matches!(settings.grant, Grant::AuthorizationCode(_))
    }
}

const OFFLINE_ACCESS: &str = "offline_access";
