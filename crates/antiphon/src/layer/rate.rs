//! How often may somebody call?
//!
//! Each caller has a bucket of calls that fills again with time, and each method with a quota of its own
//! has one more. An entry of a batch is charged like a single call. Memory is bounded: a caller whose
//! bucket is full is forgotten, and callers for whom there is no room share a bucket of their quota.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::{ErrorObject, RawJson};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::pass::IncomingCall;
use super::passage::Passage;
use super::{BoxError, Wrapped, always_ready};
use crate::context::Context;

/// How many callers are remembered where nothing else is said.
const CALLERS: usize = 65_536;
/// Locks among which the callers are spread.
const SHARDS: usize = 16;
/// How often it is looked for callers to forget, at most: each look takes time.
const SWEEP: u64 = 100_000_000;

/// So many calls in so much time, and so many at once.
///
/// ```
/// use antiphon::layer::Quota;
/// use std::time::Duration;
///
/// let search = Quota::per_second(5).burst(20);
/// let report = Quota::new(3, Duration::from_secs(3_600));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    /// Nanoseconds until a call is free again.
    interval: u64,
    /// The size of the bucket.
    burst: u32,
}

impl Quota {
    /// This many calls in this time; all of them may come at once.
    pub fn new(calls: u32, time: Duration) -> Self {
        let calls = calls.max(1);
        Self { interval: nanos(time / calls).max(1), burst: calls }
    }

    /// This many calls a second.
    pub fn per_second(calls: u32) -> Self {
        Self::new(calls, Duration::from_secs(1))
    }

    /// Only so many at once, at least one.
    #[must_use]
    pub fn burst(mut self, calls: u32) -> Self {
        self.burst = calls.max(1);
        self
    }

    /// Takes one call out of a bucket, or says how long to wait for one.
    ///
    /// A bucket is the time at which it will be full again; so it is one number, and nothing has to
    /// fill it.
    fn charge(self, full_at: &mut u64, now: u64) -> Result<(), Duration> {
        let next = (*full_at).max(now).saturating_add(self.interval);
        let size = self.interval.saturating_mul(u64::from(self.burst));
        match (next - now).checked_sub(size) {
            None | Some(0) => {
                *full_at = next;
                Ok(())
            }
            Some(wait) => Err(Duration::from_nanos(wait)),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Refuses who calls too often with -32014, whose `data` says `{"retryAfterMs": ..}`.
///
/// A caller is an [`Identity`](super::Identity), so put [`Auth`](super::Auth) around it; else an
/// address without its port; else a connection. Of an IPv6 address the first 64 bits count: whoever
/// has one of them mostly has them all. Clones share the buckets.
///
/// ```
/// use antiphon::layer::{Quota, RateLimit};
/// use antiphon::{Handler, Router};
///
/// # let router = Router::new();
/// let service = router.layer(
///     RateLimit::new(Quota::per_second(100)).method("search", Quota::per_second(5)),
/// );
/// ```
#[derive(Clone)]
pub struct RateLimit {
    quotas: Arc<Quotas>,
    buckets: Arc<Buckets>,
}

#[derive(Clone)]
struct Quotas {
    usual: Quota,
    methods: HashMap<Box<str>, Quota>,
}

struct Buckets {
    start: Instant,
    /// A secret, so that nobody can choose whose bucket to share.
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
    /// Callers that a shard remembers.
    room: usize,
}

#[derive(Default)]
struct Shard {
    full_at: HashMap<u64, u64>,
    /// The buckets of all for whom there is no room, one for each quota: they are of different sizes.
    crowds: HashMap<Quota, u64>,
    swept: u64,
}

impl RateLimit {
    /// This quota for each caller, all methods together.
    pub fn new(quota: Quota) -> Self {
        let quotas = Quotas { usual: quota, methods: HashMap::new() };
        Self { quotas: Arc::new(quotas), buckets: Arc::new(Buckets::new(CALLERS)) }
    }

    /// A quota of its own for this method, which is then not counted with the others.
    #[must_use]
    pub fn method(mut self, name: &str, quota: Quota) -> Self {
        Arc::make_mut(&mut self.quotas).methods.insert(name.into(), quota);
        self
    }

    /// How many callers are remembered, with their methods of own quotas; 65,536 otherwise.
    #[must_use]
    pub fn callers(mut self, callers: usize) -> Self {
        self.buckets = Arc::new(Buckets::new(callers));
        self
    }

    fn charge(&self, served: &IncomingCall) -> Result<(), Duration> {
        let name = served.call.method.as_str();
        match self.quotas.methods.get(name) {
            Some(quota) => self.buckets.charge(*quota, &(Caller::of(&served.cx), Some(name))),
            None => self.buckets.charge(self.quotas.usual, &(Caller::of(&served.cx), None)),
        }
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("quota", &self.quotas.usual).finish_non_exhaustive()
    }
}

/// Who is charged.
#[derive(Hash)]
enum Caller<'a> {
    Identity(&'a str),
    Address(IpAddr),
    /// A connection without an address, by where it stands in memory.
    Connection(usize),
}

impl<'a> Caller<'a> {
    fn of(cx: &'a Context) -> Self {
        match (cx.identity(), cx.connection().remote, cx.peer()) {
            (Some(identity), ..) => Self::Identity(identity.name()),
            (None, Some(address), _) => Self::Address(network(address.ip())),
            (None, None, Ok(peer)) => {
                Self::Connection(std::ptr::from_ref(peer.connection()).addr())
            }
            (None, None, Err(_)) => Self::Connection(0),
        }
    }
}

/// What an address counts as: an IPv4 address in the clothes of IPv6 is itself, and an IPv6 address is
/// the network of 64 bits that a household or a host has.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address => address,
    }
}

impl Buckets {
    fn new(callers: usize) -> Self {
        Self {
            start: Instant::now(),
            hasher: RandomState::new(),
            shards: Default::default(),
            room: callers.div_ceil(SHARDS),
        }
    }

    fn charge(&self, quota: Quota, who: &(Caller<'_>, Option<&str>)) -> Result<(), Duration> {
        let key = self.hasher.hash_one(who);
        let now = nanos(self.start.elapsed());
        let shard = &self.shards[(key % SHARDS as u64) as usize];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        quota.charge(shard.bucket(quota, key, now, self.room), now)
    }
}

impl Shard {
    fn bucket(&mut self, quota: Quota, key: u64, now: u64, room: usize) -> &mut u64 {
        if self.full_at.len() >= room && !self.full_at.contains_key(&key) {
            if now >= self.swept {
                self.swept = now.saturating_add(SWEEP);
                self.full_at.retain(|_, full_at| *full_at > now);
            }
            if self.full_at.len() >= room {
                return self.crowds.entry(quota).or_default();
            }
        }
        self.full_at.entry(key).or_default()
    }
}

impl<S> Layer<S> for RateLimit {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { policy: self.clone(), inner }
    }
}

impl<S> Service<IncomingCall> for Wrapped<RateLimit, S>
where
    S: Service<IncomingCall, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
{
    type Response = RawJson;
    type Error = ErrorObject;
    type Future = Passage<S, IncomingCall>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), ErrorObject>> {
        always_ready(poller)
    }

    fn call(&mut self, served: IncomingCall) -> Self::Future {
        match self.policy.charge(&served) {
            Ok(()) => Passage::enter(&mut self.inner, served),
            Err(wait) => Passage::refuse(ErrorObject::rate_limited(wait)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_bucket_holds_a_burst_and_fills_with_time() {
        let quota = Quota::per_second(10).burst(3);
        let (mut bucket, start) = (0, 5 * SECOND);
        for _ in 0..3 {
            assert!(quota.charge(&mut bucket, start).is_ok());
        }
        assert_eq!(quota.charge(&mut bucket, start), Err(Duration::from_millis(100)));
        let later = start + SECOND / 10;
        assert!(quota.charge(&mut bucket, later).is_ok());
        assert_eq!(quota.charge(&mut bucket, later), Err(Duration::from_millis(100)));
        let much_later = start + 100 * SECOND;
        let taken = (0..10).filter(|_| quota.charge(&mut bucket, much_later).is_ok()).count();
        assert_eq!(taken, 3, "it holds no more than a burst, however long it fills");
    }

    #[test]
    fn no_number_of_callers_takes_more_memory() {
        let mut shard = Shard::default();
        let quota = Quota::per_second(1);
        for key in 0..1_000 {
            let _ = quota.charge(shard.bucket(quota, key, 0, 8), 0);
        }
        assert_eq!(shard.full_at.len(), 8);
        assert!(quota.charge(shard.bucket(quota, 3, 0, 8), 0).is_err(), "who is known stays known");
        assert!(
            quota.charge(shard.bucket(quota, 77, 0, 8), 0).is_err(),
            "the others share a bucket"
        );
        assert!(quota.charge(shard.bucket(quota, 77, 2 * SECOND, 8), 2 * SECOND).is_ok());
        assert_eq!(shard.full_at.len(), 1, "full buckets are forgotten");
    }

    #[test]
    fn a_crowd_of_one_quota_takes_nothing_from_that_of_another() {
        let mut shard = Shard::default();
        let (slow, fast) = (Quota::new(1, Duration::from_secs(3_600)), Quota::per_second(100));
        assert!(slow.charge(shard.bucket(slow, 1, 0, 0), 0).is_ok());
        assert!(slow.charge(shard.bucket(slow, 2, 0, 0), 0).is_err());
        for key in 0..100 {
            assert!(fast.charge(shard.bucket(fast, key, 0, 0), 0).is_ok());
        }
        assert!(fast.charge(shard.bucket(fast, 100, 0, 0), 0).is_err());
    }

    #[test]
    fn an_address_counts_as_what_one_caller_has() {
        for (shown, counted) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ] {
            let shown: IpAddr = shown.parse().unwrap();
            assert_eq!(network(shown), counted.parse::<IpAddr>().unwrap(), "{shown}");
        }
    }
}
