//! Verified tokens, so that a token is not verified for each request.
//!
//! The key is a digest, so the cache holds no tokens. An entry ends with its token, and never lives longer than the
//! limit: a revoked token is accepted until then.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use ring::digest::{SHA256, digest};

use super::Access;
use crate::auth::Secret;

type TokenDigest = [u8; 32];

/// A bounded cache of verified tokens.
#[derive(Debug)]
pub(super) struct TokenCache {
    capacity: usize,
    max_age: Duration,
    entries: Mutex<HashMap<TokenDigest, CachedAccess>>,
}

#[derive(Debug)]
struct CachedAccess {
    access: Access,
    until: Instant,
}

impl TokenCache {
    pub(super) fn new(capacity: usize, max_age: Duration) -> Self {
        Self { capacity, max_age, entries: Mutex::default() }
    }

    /// Returns what a token allows, if it was verified not long ago.
    pub(super) fn get(&self, token: &Secret) -> Option<Access> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(&key(token)?)?;
        (entry.until > Instant::now()).then(|| entry.access.clone())
    }

    /// Remembers what a verified token allows.
    pub(super) fn insert(&self, token: &Secret, access: &Access) {
        let Some(key) = key(token) else { return };
        let rest = access
            .expires_at()
            .map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
        let age = rest.map_or(self.max_age, |rest| rest.min(self.max_age));
        let now = Instant::now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.capacity {
            entries.retain(|_, entry| entry.until > now);
        }
        // Only valid tokens are cached, so an attacker cannot fill the cache with made-up ones.
        if entries.len() < self.capacity && !age.is_zero() {
            entries.insert(key, CachedAccess { access: access.clone(), until: now + age });
        }
    }
}

fn key(token: &Secret) -> Option<TokenDigest> {
    digest(&SHA256, token.expose().as_bytes()).as_ref().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_with_their_tokens_and_are_bounded() {
        let cache = TokenCache::new(2, Duration::from_secs(60));
        let (a, b, c) = (Secret::new("a"), Secret::new("b"), Secret::new("c"));
        let now = SystemTime::now();
        cache.insert(&a, &Access::new().with_expires_at(now - Duration::from_secs(1)));
        assert!(cache.get(&a).is_none());
        cache.insert(&a, &Access::new().with_subject("a"));
        cache.insert(&b, &Access::new());
        cache.insert(&c, &Access::new());
        assert_eq!(cache.get(&a).unwrap().subject(), Some("a"));
        assert!(cache.get(&b).is_some() && cache.get(&c).is_none());
    }
}
