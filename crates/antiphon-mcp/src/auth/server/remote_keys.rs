//! The public keys of an authorization server at a URL.
//!
//! The set is fetched on first use and when it is too old. It is also fetched when a token names an unknown key, because
//! the server may have new keys. Attackers can send such tokens at will, so attempts have a minimum interval. When an
//! attempt fails, the old keys stay in use. A fetch runs in a task of its own, because the request that started it may
//! be cancelled while others wait for its result.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;
use url::Url;

use crate::auth::http_fetch::named;
use crate::auth::jwt::JwkSetDocument;
use crate::auth::web_url::UrlRule;
use crate::auth::{FetchError, HttpFetch, JwkSet, WebUrlError};

/// The public keys of an authorization server at a URL. Clones share them.
///
/// By default, keys are used for 10 minutes, and at most one fetch per 30 seconds is attempted.
#[derive(Clone)]
pub struct RemoteKeys {
    url: Url,
    fetch: HttpFetch,
    max_age: Duration,
    min_interval: Duration,
    loaded: Arc<RwLock<Option<LoadedKeys>>>,
    /// The time of the last attempt. Locked during an attempt.
    attempted: Arc<Mutex<Option<Instant>>>,
}

#[derive(Clone)]
struct LoadedKeys {
    keys: Arc<JwkSet>,
    at: Instant,
}

/// There are no keys, because every attempt to fetch them failed.
#[derive(Debug, thiserror::Error)]
#[error("no keys from {0}; check that the URL is reachable and serves a JWK set")]
pub(super) struct NoKeys(String);

impl RemoteKeys {
    /// Uses the keys at this URL: the `jwks_uri` of the authorization server.
    ///
    /// # Errors
    /// Fails if the URL is neither `https` nor on a loopback address.
    pub fn new(url: &str) -> Result<Self, WebUrlError> {
        Ok(Self {
            url: UrlRule::Local.parse(url)?,
            fetch: HttpFetch::new().timeout(Duration::from_secs(5)),
            max_age: Duration::from_secs(600),
            min_interval: Duration::from_secs(30),
            loaded: Arc::default(),
            attempted: Arc::default(),
        })
    }

    /// Sets the HTTP settings.
    #[must_use]
    pub fn fetch(mut self, fetch: HttpFetch) -> Self {
        self.fetch = fetch;
        self
    }

    /// Sets how long keys are used before they are fetched again.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// Sets the minimum interval between attempts to fetch the keys.
    #[must_use]
    pub fn min_interval(mut self, interval: Duration) -> Self {
        self.min_interval = interval;
        self
    }

    /// Returns the current keys. Fetches them first if they are too old, or do not suffice.
    pub(super) async fn with(
        &self,
        suffice: impl Fn(&JwkSet) -> bool,
    ) -> Result<Arc<JwkSet>, NoKeys> {
        let loaded = self.loaded();
        let is_usable =
            |loaded: &LoadedKeys| loaded.at.elapsed() < self.max_age && suffice(&loaded.keys);
        if let Some(loaded) = loaded.as_ref().filter(|loaded| is_usable(loaded)) {
            return Ok(loaded.keys.clone());
        }
        self.refresh(loaded.map(|loaded| loaded.at)).await;
        self.loaded().map(|loaded| loaded.keys).ok_or_else(|| NoKeys(named(&self.url)))
    }

    /// Fetches the keys, unless another request has done so since `seen`, or attempted it just now.
    async fn refresh(&self, seen: Option<Instant>) {
        let mut attempted = self.attempted.clone().lock_owned().await;
        let is_too_soon = attempted.is_some_and(|last| last.elapsed() < self.min_interval);
        if is_too_soon || self.loaded().map(|loaded| loaded.at) != seen {
            return;
        }
        *attempted = Some(Instant::now());
        let _ = tokio::spawn(self.clone().load(attempted)).await;
    }

    async fn load(self, _turn: OwnedMutexGuard<Option<Instant>>) {
        match self.fetch_keys().await {
            Ok(keys) => {
                let loaded = LoadedKeys { keys: Arc::new(keys), at: Instant::now() };
                *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
            }
            Err(error) => {
                tracing::warn!(%error, "cannot fetch the keys of the authorization server");
            }
        }
    }

    async fn fetch_keys(&self) -> Result<JwkSet, FetchError> {
        let document: JwkSetDocument = self.fetch.json(&self.url, UrlRule::of(&self.url)).await?;
        Ok(document.into())
    }

    fn loaded(&self) -> Option<LoadedKeys> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for RemoteKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteKeys").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}
