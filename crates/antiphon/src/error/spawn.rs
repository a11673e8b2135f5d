//! The error of a task that was not started.

use antiphon_core::ErrorObject;

use super::{CloseReason, ErrorChain};

/// The reason why [`Context::spawn`](crate::Context::spawn) did not start a task.
///
/// ```
/// use antiphon::SpawnError;
///
/// let error = SpawnError::NoConnection("http");
/// assert_eq!(error.to_string(), "http has no connection that a task can belong to; use tokio::spawn");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The connection already runs its maximum number of tasks.
    #[error("the connection runs {0} tasks, which is its limit; raise `Limits::in_flight`")]
    Full(usize),
    /// The connection has ended, or is about to.
    #[error("the connection is closed")]
    Closed(#[source] CloseReason),
    /// The call came over a transport without connections, such as HTTP.
    #[error("{0} has no connection that a task can belong to; use tokio::spawn")]
    NoConnection(&'static str),
}

/// For `?` in a handler. The caller of a busy connection gets -32009. Any other reason becomes -32603 and
/// is logged.
impl From<SpawnError> for ErrorObject {
    fn from(error: SpawnError) -> Self {
        if let SpawnError::Full(_) = error {
            return Self::server_busy("too many tasks");
        }
        tracing::warn!(error = %ErrorChain(&error), "a handler could not start a task");
        Self::internal_error()
    }
}
