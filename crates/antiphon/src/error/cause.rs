//! The cause of an error, and the reasons of an error and its causes as one text.

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::BoxError;

/// The cause of an error. Cheap to clone, so that all calls of a failed connection share it.
///
/// It dereferences to `dyn Error`, so [`downcast_ref`](#method.downcast_ref) finds the original error.
///
/// ```
/// use antiphon::Cause;
/// use std::io;
///
/// let cause = Cause::new(io::Error::from(io::ErrorKind::ConnectionReset));
/// assert!(cause.downcast_ref::<io::Error>().is_some());
/// let text: Cause = "the queue is closed".into();
/// assert_eq!(text.to_string(), "the queue is closed");
/// ```
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    /// Wraps an error, or a text.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into().into())
    }
}

impl<E: Into<BoxError>> From<E> for Cause {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl Deref for Cause {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Displays an error with all its causes, separated by `: `.
///
/// The `Display` of an error of this crate does not repeat its [`source`](Error::source), so each reason
/// appears once. Use it for logs and messages to users.
///
/// ```
/// use antiphon::{CallError, ErrorChain};
///
/// let error = CallError::Closed("the queue is full".into());
/// assert_eq!(error.to_string(), "the connection is closed");
/// assert_eq!(ErrorChain(&error).to_string(), "the connection is closed: the queue is full");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ErrorChain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
