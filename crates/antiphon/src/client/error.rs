//! The error of connecting.

use std::io;

use antiphon_core::ErrorObject;

use crate::endpoint::EndpointError;
use crate::error::IntoErrorObject;

/// A client could not connect.
#[derive(Debug, thiserror::Error)]
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

impl ConnectError {
    /// The message with its cause.
    pub(crate) fn in_full(&self) -> String {
        match self {
            Self::Failed { source, .. } => format!("{self}: {source}"),
            Self::Endpoint(_) => self.to_string(),
        }
    }
}

impl From<ConnectError> for ErrorObject {
    fn from(error: ConnectError) -> Self {
        tracing::warn!(%error, "a handler could not connect");
        Self::internal_error()
    }
}

impl IntoErrorObject for ConnectError {
    fn into_error_object(self) -> ErrorObject {
        self.into()
    }
}
