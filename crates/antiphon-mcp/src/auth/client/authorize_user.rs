//! The step that the user takes: to authorize the client in a browser.

use antiphon::BoxFuture;

/// The reason why a user could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserError {
    /// The redirect cannot be received.
    #[error("cannot listen on {address} for the redirect; use another port")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The user did not finish in time.
    #[error("no authorization within {0} s; start again")]
    Timeout(u64),
    /// Another reason.
    #[error("{0}")]
    Other(String),
}

/// Asks users to authorize the client.
///
/// [`LoopbackRedirect`](super::LoopbackRedirect) is for programs on the machine of the user. A web application
/// implements this trait with a redirect to itself.
pub trait AuthorizeUser: Send + Sync {
    /// Prepares for one authorization. The redirect URI is known from here on.
    ///
    /// # Errors
    /// Fails if the redirect cannot be received.
    fn prepare(&self) -> BoxFuture<'_, Result<Box<dyn PendingAuthorization>, UserError>>;
}

/// An authorization that is prepared.
pub trait PendingAuthorization: Send {
    /// Returns the URI to which the authorization server redirects the browser.
    fn redirect_uri(&self) -> &str;

    /// Shows the user this URL, and returns the query of the redirect. The caller checks the query.
    ///
    /// # Errors
    /// Fails if the user does not answer.
    fn authorize(self: Box<Self>, url: String) -> BoxFuture<'static, Result<String, UserError>>;
}
