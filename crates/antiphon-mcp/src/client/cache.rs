//! Results that the server allows to cache (2026-07-28, utilities, caching).
//!
//! A client is one authorization context, so private results may be reused. The cache is bounded in entries and in
//! bytes. Notifications of changes invalidate it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use antiphon::RawJson;
use tokio::time::Instant;

use super::inbox::{ServerNotification, locked};
use crate::types::{Cacheable, methods};

/// The most entries.
const MAX_ENTRIES: usize = 256;
/// The largest size of all results.
const MAX_BYTES: usize = 16 << 20;
/// The longest time for which a result is kept, whatever the server says.
const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The method, and the cursor or URI of the request.
type Key = (&'static str, String);

/// Results that are fresh.
#[derive(Default)]
pub(super) struct Cache(Mutex<State>);

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    /// Counts invalidations, so that a result that was requested before one is not kept.
    epoch: u64,
}

struct Entry {
    result: RawJson,
    stale_at: Instant,
}

impl Cache {
    /// Returns a fresh result.
    pub(super) fn fresh(&self, method: &'static str, key: &str) -> Option<RawJson> {
        let state = locked(&self.0);
        let entry = state.entries.get(&(method, key.to_owned()))?;
        (Instant::now() < entry.stale_at).then(|| entry.result.clone())
    }

    /// Returns what `keep` needs to know whether the result is outdated when it arrives.
    pub(super) fn epoch(&self) -> u64 {
        locked(&self.0).epoch
    }

    /// Keeps a result for as long as the server allows.
    pub(super) fn keep(
        &self,
        method: &'static str,
        key: &str,
        result: &RawJson,
        cache: &Cacheable,
        epoch: u64,
    ) {
        let ttl = Duration::from_millis(cache.ttl_ms.unwrap_or(0)).min(MAX_TTL);
        let size = result.as_bytes().len();
        let mut state = locked(&self.0);
        if ttl.is_zero() || size > MAX_BYTES / 4 || state.epoch != epoch {
            return;
        }
        let stale_at = Instant::now() + ttl;
        state.remove(&(method, key.to_owned()));
        if state.entries.len() >= MAX_ENTRIES || state.bytes + size > MAX_BYTES {
            state.make_room();
        }
        state.bytes += size;
        state.entries.insert((method, key.to_owned()), Entry { result: result.clone(), stale_at });
    }

    /// Removes what a notification has made stale.
    pub(super) fn invalidate(&self, event: &ServerNotification) {
        let is_stale = |(method, key): &Key| match event {
            ServerNotification::ToolsChanged => *method == methods::LIST_TOOLS,
            ServerNotification::PromptsChanged => *method == methods::LIST_PROMPTS,
            ServerNotification::ResourcesChanged => {
                [methods::LIST_RESOURCES, methods::LIST_RESOURCE_TEMPLATES].contains(method)
            }
            ServerNotification::ResourceUpdated { uri } => {
                // The server may name a parent of the resource that was read.
                *method == methods::READ_RESOURCE && key.starts_with(uri.as_str())
            }
            _ => false,
        };
        let mut state = locked(&self.0);
        state.epoch += 1;
        state.retain(|key, _| !is_stale(key));
    }

    /// Removes the results of a method.
    pub(super) fn forget(&self, forgotten: &'static str) {
        let mut state = locked(&self.0);
        state.epoch += 1;
        state.retain(|(method, _), _| *method != forgotten);
    }

    /// Removes everything, for example because the authorization has changed.
    pub(super) fn clear(&self) {
        let mut state = locked(&self.0);
        state.epoch += 1;
        state.retain(|_, _| false);
    }
}

impl State {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.result.as_bytes().len();
        }
    }

    fn retain(&mut self, keep: impl Fn(&Key, &Entry) -> bool) {
        self.entries.retain(|key, entry| keep(key, entry));
        self.bytes = self.entries.values().map(|entry| entry.result.as_bytes().len()).sum();
    }

    /// Removes stale results, or else everything: a full cache is rare.
    fn make_room(&mut self) {
        let now = Instant::now();
        self.retain(|_, entry| now < entry.stale_at);
        if self.entries.len() >= MAX_ENTRIES || self.bytes > MAX_BYTES / 2 {
            self.retain(|_, _| false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::CacheScope;

    fn result(size: usize) -> RawJson {
        RawJson::encode(&"x".repeat(size)).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_fresh_until_its_ttl_or_a_notification() {
        let cache = Cache::default();
        let keep = |method, key, ttl| {
            let ttl = Cacheable::new(ttl, CacheScope::Private);
            cache.keep(method, key, &result(1), &ttl, cache.epoch());
        };
        keep(methods::LIST_TOOLS, "", 1000);
        keep(methods::LIST_PROMPTS, "", 0);
        keep(methods::READ_RESOURCE, "a:b/c", 5000);
        assert!(cache.fresh(methods::LIST_TOOLS, "").is_some());
        assert!(cache.fresh(methods::LIST_TOOLS, "2").is_none());
        assert!(cache.fresh(methods::LIST_PROMPTS, "").is_none());
        tokio::time::advance(Duration::from_millis(1000)).await;
        assert!(cache.fresh(methods::LIST_TOOLS, "").is_none());
        assert!(cache.fresh(methods::READ_RESOURCE, "a:b/c").is_some());
        cache.invalidate(&ServerNotification::ResourceUpdated { uri: "a:b".to_owned() });
        assert!(cache.fresh(methods::READ_RESOURCE, "a:b/c").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_from_before_a_change_is_not_kept() {
        let cache = Cache::default();
        let epoch = cache.epoch();
        cache.invalidate(&ServerNotification::ToolsChanged);
        let ttl = Cacheable::new(1000, CacheScope::Public);
        cache.keep(methods::LIST_TOOLS, "", &result(1), &ttl, epoch);
        assert!(cache.fresh(methods::LIST_TOOLS, "").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn entries_and_bytes_are_bounded() {
        let cache = Cache::default();
        let ttl = Cacheable::new(u64::MAX, CacheScope::Public);
        let large = result(100_000);
        for count in 0..1000 {
            cache.keep(methods::READ_RESOURCE, &count.to_string(), &large, &ttl, 0);
        }
        let state = locked(&cache.0);
        assert!(!state.entries.is_empty() && state.entries.len() <= MAX_ENTRIES);
        assert!(state.bytes <= MAX_BYTES);
    }
}
