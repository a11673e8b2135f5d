//! The error of connecting.

use std::error::Error as _;
use std::io;

use antiphon_core::ErrorObject;
use http::StatusCode;

use crate::endpoint::EndpointError;
use crate::error::{ErrorChain, HttpStatusError, IntoErrorObject};

/// A client could not connect.
///
/// ```
/// use antiphon::{Client, ConnectError};
///
/// # async fn example() {
/// match Client::connect("tcp://127.0.0.1:8650").await {
///     Ok(client) => drop(client),
///     Err(ConnectError::Failed { endpoint, source }) => println!("{endpoint}: {source}"),
///     Err(other) => println!("{other}"),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is not an endpoint.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The server cannot be reached, or the handshake failed. See [`http_status`](Self::http_status).
    #[error("cannot connect to {endpoint}")]
    Failed {
        /// The endpoint.
        endpoint: String,
        /// The cause.
        source: io::Error,
    },
}

impl ConnectError {
    /// The HTTP status with which the server refused the upgrade to WebSocket: for example 401, 404 or 503.
    /// Its [`HttpStatusError`] is in the chain of causes, also in the reason of a client that has given up reconnecting.
    ///
    /// ```
    /// use antiphon::http::StatusCode;
    /// use antiphon::{Client, ConnectError};
    ///
    /// # async fn example() -> Result<(), ConnectError> {
    /// match Client::connect("ws://127.0.0.1:8650").await {
    ///     Err(error) if error.http_status() == Some(StatusCode::UNAUTHORIZED) => println!("log in"),
    ///     other => drop(other?),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn http_status(&self) -> Option<StatusCode> {
        let mut cause = self.source();
        while let Some(error) = cause {
            if let Some(refused) = error.downcast_ref::<HttpStatusError>() {
                return Some(refused.status);
            }
            cause = error.source();
        }
        None
    }
}

impl From<ConnectError> for ErrorObject {
    fn from(error: ConnectError) -> Self {
        tracing::warn!(error = %ErrorChain(&error), "a handler could not connect");
        Self::internal_error()
    }
}

impl IntoErrorObject for ConnectError {
    fn into_error_object(self) -> ErrorObject {
        self.into()
    }
}
