//! How a client obtains access tokens.

use std::fmt;
use std::sync::Arc;

use super::{AssertionSource, AuthorizeUser, EnterpriseManaged};

/// How a client obtains access tokens.
#[derive(Clone)]
#[non_exhaustive]
pub enum Grant {
    /// A user authorizes the client in a browser.
    AuthorizationCode(Arc<dyn AuthorizeUser>),
    /// The client acts on its own behalf. It needs credentials of its own: see
    /// [`pre_registered`](super::OAuthClientBuilder::pre_registered).
    ClientCredentials,
    /// The client presents the token of another system, for example of the platform that it runs on (RFC 7523).
    Assertion(Arc<dyn AssertionSource>),
    /// The single sign-on of an enterprise authorizes the client.
    EnterpriseManaged(EnterpriseManaged),
}

impl Grant {
    /// A user authorizes the client in a browser.
    pub fn authorization_code(user: impl AuthorizeUser + 'static) -> Self {
        Self::AuthorizationCode(Arc::new(user))
    }

    /// The client presents the token of another system.
    pub fn assertion(source: impl AssertionSource + 'static) -> Self {
        Self::Assertion(Arc::new(source))
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AuthorizationCode(_) => "AuthorizationCode",
            Self::ClientCredentials => "ClientCredentials",
            Self::Assertion(_) => "Assertion",
            Self::EnterpriseManaged(_) => "EnterpriseManaged",
        })
    }
}
