//! The error of connecting.

use std::io;

use antiphon_core::ErrorObject;

use crate::endpoint::EndpointError;
use crate::error::{ErrorChain, IntoErrorObject};

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
    /// The server cannot be reached, or the handshake failed.
    #[error("cannot connect to {endpoint}")]
    Failed {
        /// The endpoint.
        endpoint: String,
        /// The cause.
        source: io::Error,
    },
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
