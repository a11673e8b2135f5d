//! The authenticated identity of a caller.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The authenticated identity of a caller. Cheap to clone.
///
/// A handler reads it with [`Context::identity`](crate::Context::identity).
///
/// ```
/// use antiphon::Identity;
///
/// struct Roles(Vec<&'static str>);
///
/// let ada = Identity::new("ada").with(Roles(vec!["admin"]));
/// assert_eq!(ada.name(), "ada");
/// assert_eq!(ada.get::<Roles>().unwrap().0, ["admin"]);
/// ```
#[derive(Clone)]
pub struct Identity {
    name: Arc<str>,
    data: Option<Arc<dyn Any + Send + Sync>>,
    /// The mark of the [`Auth`](crate::layer::Auth) with which an HTTP policy accepted the caller. It is 0 if the
    /// application created the identity.
    mark: u64,
}

impl Identity {
    /// Creates an identity with this name. Identities with the same name share a rate limit.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), data: None, mark: 0 }
    }

    /// Attaches application data, such as roles or the claims of a token. It replaces the data that was
    /// attached before, of any type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, data: T) -> Self {
        self.data = Some(Arc::new(data));
        self
    }

    /// Returns this identity with the mark of the rules that accepted the caller.
    #[cfg(feature = "http")]
    pub(crate) fn accepted_by(&self, mark: u64) -> Self {
        Self { mark, ..self.clone() }
    }

    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the attached data, if it has this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.data.as_ref()?.downcast_ref()
    }
}

impl From<&str> for Identity {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Identity {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.name).finish()
    }
}
