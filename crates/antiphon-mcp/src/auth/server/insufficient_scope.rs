//! The error of a request whose token lacks scopes.

use antiphon::{Code, ErrorObject, IntoErrorObject};
use http::HeaderValue;

use super::{Access, ProtectedResource, refusal};
use crate::auth::Scopes;

/// The token of a request lacks scopes. A client may obtain them and repeat the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("insufficient scope: this operation needs a token with {required:?}", required = required.to_string())]
#[non_exhaustive]
pub struct InsufficientScope {
    /// The scopes that the operation needs.
    pub required: Scopes,
}

impl InsufficientScope {
    /// Creates the error of an operation that needs these scopes.
    pub fn new(required: impl Into<Scopes>) -> Self {
        Self { required: required.into() }
    }

    /// Returns the value of `www-authenticate` for a response with status 403 (RFC 6750, section 3.1).
    pub fn challenge(&self, resource: &ProtectedResource) -> HeaderValue {
        refusal::challenge(
            resource,
            Some(&self.required),
            Some(("insufficient_scope", "the token lacks scopes of this operation")),
        )
    }
}

/// The JSON-RPC error of the response. Its data names the scopes.
impl From<InsufficientScope> for ErrorObject {
    fn from(error: InsufficientScope) -> Self {
        Self::new(Code::UNAUTHORIZED.0, "Insufficient scope")
            .with_data(&serde_json::json!({ "requiredScopes": error.required }))
    }
}

impl IntoErrorObject for InsufficientScope {
    fn into_error_object(self) -> ErrorObject {
        self.into()
    }
}

/// Requires scopes of the token of the current request, as [`Access::require`] does. Without a token, no scope is
/// granted.
///
/// # Errors
/// Fails if the token does not grant all of them.
pub fn require_scopes(access: Option<&Access>, required: &[&str]) -> Result<(), InsufficientScope> {
    match access {
        Some(access) => access.require(required),
        None if required.is_empty() => Ok(()),
        None => Err(InsufficientScope::new(required)),
    }
}
