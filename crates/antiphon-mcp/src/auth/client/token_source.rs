//! Where an HTTP client gets its access tokens from.

use antiphon::BoxFuture;

use super::{AccessToken, OAuthError};
use crate::auth::Challenge;

/// Where an HTTP client gets its access tokens from.
pub trait TokenSource: Send + Sync {
    /// Returns the token for a request, or `None` to send the request without one.
    ///
    /// `challenge` is `None` before a request. After a response with status 401 or 403, it is the challenge of that
    /// response, with the token that the request carried in [`Challenge::rejected`]. The client then repeats the
    /// request with the new token a few times at most. `None` means that a new token would not help.
    ///
    /// # Errors
    /// Fails if no token can be obtained.
    fn token(
        &self,
        challenge: Option<Challenge>,
    ) -> BoxFuture<'_, Result<Option<AccessToken>, OAuthError>>;
}
