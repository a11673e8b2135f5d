//! The OAuth client of one MCP server.

use std::fmt;
use std::sync::Arc;

use antiphon::{BoxFuture, Cause};
use http::{HeaderMap, Method, Uri};

use super::flow_settings::FlowSettings;
use super::token_flow::TokenFlow;
use super::{AccessToken, Grant, OAuthClientBuilder, OAuthError, TokenSource};
use crate::auth::Challenge;
use crate::client::{Credentials, Refusal};

/// The OAuth client of one MCP server: a [`TokenSource`]. Clones share their tokens.
#[derive(Clone)]
pub struct OAuthClient(Arc<TokenFlow>);

impl OAuthClient {
    /// Starts the settings of a client for the MCP server at this URL.
    pub fn builder(server: impl Into<String>, grant: Grant) -> OAuthClientBuilder {
        OAuthClientBuilder::new(server.into(), grant)
    }

    pub(super) fn with(settings: FlowSettings) -> Self {
        Self(Arc::new(TokenFlow::new(settings)))
    }
}

impl TokenSource for OAuthClient {
    /// # Cancel safety
    /// If the future is dropped, the flow continues, and a later call gets its token.
    fn token(
        &self,
        challenge: Option<Challenge>,
    ) -> BoxFuture<'_, Result<Option<AccessToken>, OAuthError>> {
        Box::pin(async move {
            if challenge.is_none()
                && let Some(token) = self.0.ready()
            {
                return Ok(token);
            }
            let flow = tokio::spawn(self.0.clone().run(challenge));
            flow.await.unwrap_or(Err(OAuthError::Interrupted))
        })
    }
}

/// For [`McpClientBuilder::credentials`](crate::client::McpClientBuilder::credentials).
impl Credentials for OAuthClient {
    fn token<'a>(
        &'a self,
        refused: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<String>, Cause>> {
        Box::pin(async move {
            let challenge = refused.as_ref().map(Challenge::of_refusal);
            let token = TokenSource::token(self, challenge).await?;
            Ok(token.map(|token| token.secret().expose().to_owned()))
        })
    }

    fn authorize(
        &self,
        token: &str,
        method: &Method,
        url: &Uri,
        headers: &mut HeaderMap,
    ) -> Result<(), Cause> {
        let url = url.to_string();
        self.0.settings.check_server(&url)?;
        Ok(self.0.access_token(token).authorize(method, &url, headers)?)
    }
}

impl fmt::Debug for OAuthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthClient")
            .field("server", &self.0.settings.server.as_str())
            .field("grant", &self.0.settings.grant)
            .finish_non_exhaustive()
    }
}
