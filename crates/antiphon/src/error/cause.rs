//! The cause of an error.

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
