//! Why there is no connection.

use std::io;

use antiphon_core::ErrorObject;

use crate::endpoint::EndpointError;
use crate::error::IntoErrorObject;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address makes no sense.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Nobody answered there, or not as expected.
    #[error("cannot connect to {endpoint}")]
    Failed {
        /// Where to.
        endpoint: String,
        /// What happened.
        source: io::Error,
    },
}

impl ConnectError {
    /// With what happened.
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
