//! The layer that requires access tokens.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use antiphon::transport::http::HttpBody;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use tower_layer::Layer;

use super::bearer::{self, NoToken};
use super::scope_hierarchy::ScopeHierarchy;
use super::token_cache::TokenCache;
use super::{
    Access, AuthorizationService, InsufficientScope, ProtectedResource, TokenError, TokenVerifier,
    refusal,
};
use crate::auth::{Scopes, Secret};

/// Requires an access token for every request. A `tower` layer for
/// [`Server::http_layer`](antiphon::Server::http_layer), or around a mounted
/// [`HttpService`](antiphon::transport::http::HttpService).
///
/// Requests without a valid token get status 401, and requests with too few scopes get 403, both with a challenge. The
/// metadata document and CORS preflight requests need no token. The request that reaches the handlers has an
/// [`Access`] and an [`Identity`](antiphon::Identity) in its extensions, and no `Authorization` header: a server must
/// not pass the token on.
///
/// Web pages of every origin can read the refusals and the metadata document, which contain no secrets. Everything else is
/// only for pages whose origin the [`Guard`](antiphon::transport::http::Guard) allows.
#[derive(Clone)]
pub struct Authorization(Arc<AuthorizationRules>);

#[derive(Clone)]
pub(super) struct AuthorizationRules {
    pub(super) resource: ProtectedResource,
    verifier: Arc<dyn TokenVerifier>,
    required: Scopes,
    hierarchy: ScopeHierarchy,
    open_paths: Vec<String>,
    cache: Option<Arc<TokenCache>>,
}

impl Authorization {
    /// Requires tokens for this resource that this verifier accepts.
    pub fn new(resource: ProtectedResource, verifier: impl TokenVerifier) -> Self {
        Self(Arc::new(AuthorizationRules {
            resource,
            verifier: Arc::new(verifier),
            required: Scopes::new(),
            hierarchy: ScopeHierarchy::default(),
            open_paths: Vec::new(),
            cache: None,
        }))
    }

    /// Requires these scopes for every request. Challenges of requests without a token name them.
    #[must_use]
    pub fn require(self, scopes: impl Into<Scopes>) -> Self {
        self.change(|rules| rules.required = scopes.into())
    }

    /// Lets a broad scope imply narrower ones.
    #[must_use]
    pub fn imply(self, broad: impl Into<String>, narrow: impl Into<Scopes>) -> Self {
        self.change(|rules| rules.hierarchy.imply(broad.into(), narrow.into()))
    }

    /// Passes requests for exactly this path on without a token, for example for a health check.
    #[must_use]
    pub fn open_path(self, path: impl Into<String>) -> Self {
        self.change(|rules| rules.open_paths.push(path.into()))
    }

    /// Remembers up to this many verified tokens, each for at most this long. A token that is revoked stays accepted
    /// for that time.
    #[must_use]
    pub fn cache(self, tokens: usize, max_age: Duration) -> Self {
        self.change(|rules| rules.cache = Some(Arc::new(TokenCache::new(tokens, max_age))))
    }

    /// Returns the protected resource.
    pub fn resource(&self) -> &ProtectedResource {
        &self.0.resource
    }

    /// Returns the value of `www-authenticate` for a response with status 403.
    pub fn challenge(&self, refused: &InsufficientScope) -> HeaderValue {
        refused.challenge(&self.0.resource)
    }

    fn change(mut self, change: impl FnOnce(&mut AuthorizationRules)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl AuthorizationRules {
    /// Whether a request needs no token: an open path, or a CORS preflight request, which never has one.
    pub(super) fn is_open(&self, request: &Parts) -> bool {
        let is_preflight = request.method == Method::OPTIONS
            && request.headers.contains_key(http::header::ACCESS_CONTROL_REQUEST_METHOD);
        is_preflight || self.open_paths.iter().any(|open| open == request.uri.path())
    }

    /// Returns what the token of a request allows, or the response to the request.
    pub(super) async fn authorize(&self, request: &Parts) -> Result<Access, Response<HttpBody>> {
        let token =
            bearer::token(&request.headers).map_err(|reason| self.without_token(&reason))?;
        let access = self.verify(&token, request).await.map_err(|error| self.refuse(&error))?;
        let access = access.for_request();
        let required: Vec<&str> = self.required.iter().collect();
        match access.has_scopes(&required) {
            true => Ok(access),
            false => Err(self.step_up(&InsufficientScope::new(self.required.clone()))),
        }
    }

    async fn verify(&self, token: &Secret, request: &Parts) -> Result<Access, TokenError> {
        if let Some(access) = self.cache.as_ref().and_then(|cache| cache.get(token)) {
            return Ok(access);
        }
        let access = self.verifier.verify(token, request).await?.within(&self.hierarchy);
        if let Some(cache) = &self.cache {
            cache.insert(token, &access);
        }
        Ok(access)
    }

    fn without_token(&self, reason: &NoToken) -> Response<HttpBody> {
        match reason {
            // RFC 6750, section 3.1: without credentials, there is no error code.
            NoToken::Missing => {
                let challenge = self.challenge(None);
                refusal::refused(StatusCode::UNAUTHORIZED, Some(challenge), "send an access token")
            }
            NoToken::Malformed(reason) => {
                let challenge = self.challenge(Some(("invalid_request", reason)));
                refusal::refused(StatusCode::BAD_REQUEST, Some(challenge), reason)
            }
        }
    }

    fn refuse(&self, error: &TokenError) -> Response<HttpBody> {
        match error {
            TokenError::Invalid(reason) => {
                let challenge = self.challenge(Some(("invalid_token", reason)));
                refusal::refused(StatusCode::UNAUTHORIZED, Some(challenge), reason)
            }
            TokenError::Unavailable(reason) => {
                tracing::warn!(reason, "access tokens cannot be verified");
                refusal::unavailable()
            }
        }
    }

    fn step_up(&self, refused: &InsufficientScope) -> Response<HttpBody> {
        let challenge = refused.challenge(&self.resource);
        refusal::refused(StatusCode::FORBIDDEN, Some(challenge), &refused.to_string())
    }

    /// The challenge of a request that needs a token. It names the scopes for basic use.
    fn challenge(&self, error: Option<(&str, &str)>) -> HeaderValue {
        refusal::challenge(&self.resource, Some(&self.required), error)
    }
}

impl<S> Layer<S> for Authorization {
    type Service = AuthorizationService<S>;

    fn layer(&self, inner: S) -> AuthorizationService<S> {
        AuthorizationService::new(self.0.clone(), inner)
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorization")
            .field("resource", &self.0.resource.uri())
            .field("required", &self.0.required)
            .finish_non_exhaustive()
    }
}
