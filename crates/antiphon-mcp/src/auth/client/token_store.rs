//! Where tokens and client registrations are kept.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon::BoxFuture;

use crate::auth::Secret;

/// The reason why a token store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenStoreError {
    /// A file or directory cannot be used.
    #[error("cannot {action} the token file {}", path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Other users may read a file or directory.
    #[error("other users can access {}; run `chmod go= {}`", path.display(), path.display())]
    Exposed {
        /// The path.
        path: PathBuf,
    },
    /// Another store failed.
    #[error("the token store failed: {0}")]
    Other(String),
}

/// Keeps the tokens and registrations of a client. Values are secret, and opaque to the store.
pub trait TokenStore: Send + Sync {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Secret>, TokenStoreError>>;

    /// Saves the value of a key. It replaces the old value completely, or not at all.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    fn save<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
    ) -> BoxFuture<'a, Result<(), TokenStoreError>>;

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), TokenStoreError>>;
}

/// Keeps values until the program ends.
#[derive(Default)]
pub struct MemoryTokenStore(Mutex<HashMap<String, Secret>>);

impl MemoryTokenStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn values(&self) -> MutexGuard<'_, HashMap<String, Secret>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenStore for MemoryTokenStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Secret>, TokenStoreError>> {
        Box::pin(async move { Ok(self.values().get(key).cloned()) })
    }

    fn save<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
    ) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        Box::pin(async move {
            self.values().insert(key.to_owned(), value.clone());
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        Box::pin(async move {
            self.values().remove(key);
            Ok(())
        })
    }
}

impl<S: TokenStore + ?Sized> TokenStore for std::sync::Arc<S> {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Secret>, TokenStoreError>> {
        S::load(self, key)
    }

    fn save<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
    ) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        S::save(self, key, value)
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        S::remove(self, key)
    }
}

impl fmt::Debug for MemoryTokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTokenStore").field("values", &self.values().len()).finish()
    }
}
