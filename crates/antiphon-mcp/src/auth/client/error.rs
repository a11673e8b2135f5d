//! The errors of the client.

use super::authorization_response::ResponseError;
use super::{TokenStoreError, UserError};
use crate::auth::{FetchError, KeyError, Scopes, WebUrlError};

/// The reason why no token can be obtained. It never contains tokens, secrets or codes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// A request failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A URL is refused.
    #[error(transparent)]
    Url(#[from] WebUrlError),
    /// The MCP server does not say which authorization server it trusts.
    #[error("{server} publishes no metadata about its authorization; tried {tried}")]
    NoResourceMetadata {
        /// The MCP server.
        server: String,
        /// The URLs that were tried.
        tried: String,
    },
    /// The metadata is about another server.
    #[error(
        "the metadata at {metadata} is about the resource {resource:?}, not about {server}; \
         use the URL that the server publishes"
    )]
    ResourceMismatch {
        /// The URL of the metadata.
        metadata: String,
        /// The resource that it names.
        resource: String,
        /// The MCP server.
        server: String,
    },
    /// The metadata names no authorization server.
    #[error(
        "the metadata at {0} names no authorization server; ask the operator of the MCP server"
    )]
    NoAuthorizationServer(String),
    /// The authorization server has no usable metadata.
    #[error("no usable metadata of the authorization server {issuer}: {reason}")]
    ServerMetadata {
        /// The authorization server.
        issuer: String,
        /// The reason.
        reason: String,
    },
    /// The authorization server lacks a capability that the grant needs.
    #[error(
        "the authorization server {issuer} does not support {capability}, which this client requires"
    )]
    Unsupported {
        /// The authorization server.
        issuer: String,
        /// The capability.
        capability: String,
    },
    /// The client is not registered, and cannot register.
    #[error(
        "this client is not registered with {issuer}, which offers no registration; \
         register it there and configure its client id"
    )]
    NotRegistered {
        /// The authorization server.
        issuer: String,
    },
    /// The configured client credentials belong to another authorization server.
    #[error(
        "the client credentials belong to {known}, but the MCP server now uses {found}; \
         register the client there and configure the new credentials"
    )]
    OtherIssuer {
        /// The authorization server of the credentials.
        known: String,
        /// The authorization servers of the MCP server.
        found: String,
    },
    /// The authorization server refused the registration.
    #[error(
        "{url} refused to register this client: {error}; register it by hand and configure its client id"
    )]
    RegistrationRefused {
        /// The registration endpoint.
        url: String,
        /// The error that the server sent.
        error: String,
    },
    /// The authorization server refused a token request.
    #[error("{url} refused the token request: {error}{}", description.as_deref().map(|text| format!(" ({text})")).unwrap_or_default())]
    TokenRefused {
        /// The token endpoint.
        url: String,
        /// The error code, such as `invalid_grant`.
        error: String,
        /// The reason for developers.
        description: Option<String>,
    },
    /// The authorization server answered a token request with an unusable token.
    #[error("the token response of {url} is unusable: {reason}")]
    TokenResponse {
        /// The token endpoint.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The user could not be asked.
    #[error("cannot ask the user for authorization")]
    User(#[from] UserError),
    /// The response of the authorization server is refused, or refuses the authorization.
    #[error("the authorization failed: {0}")]
    Authorization(#[from] ResponseError),
    /// The server keeps requiring scopes that were requested already.
    #[error(
        "the MCP server still requires the scopes ({scopes}) that were requested; ask its operator for them"
    )]
    StepUpFailed {
        /// The scopes.
        scopes: Scopes,
    },
    /// There were too many authorizations within a minute.
    #[error("the MCP server rejected {0} new tokens within a minute; check its configuration")]
    TooManyAuthorizations(usize),
    /// The token store failed.
    #[error(transparent)]
    Store(#[from] TokenStoreError),
    /// A private key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The application could not provide an assertion.
    #[error("the application cannot provide the assertion for {audience}")]
    Assertion {
        /// The authorization server.
        audience: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A request goes to another server than the one that the token is for.
    #[error(
        "the token is for {server}, but the request goes to {url}; use one client for each server"
    )]
    OtherServer {
        /// The MCP server of the token.
        server: String,
        /// The URL of the request.
        url: String,
    },
    /// A token has characters that a header cannot carry.
    #[error("the token cannot be sent in a header; check the authorization server")]
    Unsendable,
    /// The system has no randomness, or the runtime is shutting down.
    #[error("the authorization was interrupted; try again")]
    Interrupted,
}

impl OAuthError {
    /// Whether the authorization server refused with this error code.
    pub(super) fn is_refusal(&self, code: &str) -> bool {
        matches!(self, Self::TokenRefused { error, .. } if error == code)
    }
}
