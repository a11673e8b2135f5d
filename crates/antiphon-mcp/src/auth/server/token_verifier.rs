//! The verification of access tokens.

use std::sync::Arc;

use antiphon::BoxFuture;
use http::request::Parts;

use super::Access;
use crate::auth::Secret;

/// The reason why a token does not allow a request. It never contains the token.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The token is invalid, expired or for another server. The text is sent to the client.
    #[error("{0}")]
    Invalid(String),
    /// The token cannot be verified at the moment. The text is only logged.
    #[error("the token cannot be verified: {0}")]
    Unavailable(String),
}

impl TokenError {
    /// Creates the error of an invalid token.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }

    /// Creates the error of a verification that is not possible at the moment.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable(reason.into())
    }
}

/// Verifies the access tokens of requests.
///
/// An implementation must accept only tokens that were issued for this server (RFC 8707), and must not log them.
///
/// ```
/// use antiphon::BoxFuture;
/// use antiphon::http::request::Parts;
/// use antiphon_mcp::auth::Secret;
/// use antiphon_mcp::auth::server::{Access, TokenError, TokenVerifier};
///
/// /// Looks tokens up in a table of this server, so each was issued for it.
/// struct Table(std::collections::HashMap<String, &'static str>);
///
/// impl TokenVerifier for Table {
///     fn verify<'a>(
///         &'a self,
///         token: &'a Secret,
///         _request: &'a Parts,
///     ) -> BoxFuture<'a, Result<Access, TokenError>> {
///         Box::pin(async move {
///             let user = self.0.get(token.expose()).ok_or(TokenError::invalid("unknown token"))?;
///             Ok(Access::new().with_subject(*user))
///         })
///     }
/// }
/// ```
pub trait TokenVerifier: Send + Sync + 'static {
    /// Verifies the token of a request.
    fn verify<'a>(
        &'a self,
        token: &'a Secret,
        request: &'a Parts,
    ) -> BoxFuture<'a, Result<Access, TokenError>>;
}

impl<V: TokenVerifier + ?Sized> TokenVerifier for Arc<V> {
    fn verify<'a>(
        &'a self,
        token: &'a Secret,
        request: &'a Parts,
    ) -> BoxFuture<'a, Result<Access, TokenError>> {
        V::verify(self, token, request)
    }
}
