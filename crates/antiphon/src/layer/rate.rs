//! A rate limit per caller: [`RateLimit`].
//!
//! Invariant: memory is bounded by the number of buckets, whatever keys arrive.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antiphon_core::ErrorObject;
use tokio::time::Instant;

use super::policy::Policy;
use crate::context::Context;
use crate::service::{CallService, IncomingCall, ReadyCall};

/// The default number of buckets.
const CALLERS: usize = 65_536;
/// The number of locks that the buckets are spread over.
const SHARDS: usize = 16;
/// The minimum nanoseconds between two searches for full buckets, because a search visits all of them.
const SWEEP: u64 = 100_000_000;

/// A number of calls per time, and a maximum burst.
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
    /// Nanoseconds until one call is refilled.
    interval: u64,
    /// The size of the bucket.
    burst: u32,
}

impl Quota {
    /// Allows this many calls per this time. All of them may arrive at once.
    pub fn new(calls: u32, time: Duration) -> Self {
        let calls = calls.max(1);
        Self { interval: nanos(time / calls).max(1), burst: calls }
    }

    /// Allows this many calls per second.
    pub fn per_second(calls: u32) -> Self {
        Self::new(calls, Duration::from_secs(1))
    }

    /// Limits the calls that may arrive at once (at least one).
    #[must_use]
    pub fn burst(mut self, calls: u32) -> Self {
        self.burst = calls.max(1);
        self
    }

    /// Takes one call out of a bucket. Fails with the time until the next call is allowed.
    ///
    /// A bucket is represented by the time at which it is full again. So it is one number, and no task
    /// has to refill it.
    ///
    /// The times are `u128`, because a burst of long intervals does not fit in a `u64`: a sum that
    /// saturates would never exceed the burst.
    fn charge(self, full_at: &mut u128, now: u64) -> Result<(), Duration> {
        let (now, interval) = (u128::from(now), u128::from(self.interval));
        let next = (*full_at).max(now) + interval;
        let size = interval * u128::from(self.burst);
        match (next - now).checked_sub(size) {
            None | Some(0) => {
                *full_at = next;
                Ok(())
            }
            Some(wait) => Err(Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Rejects calls over a rate limit with -32014, with `{"retryAfterMs": ..}` as `data`.
///
/// Each caller has a token bucket that refills with time, and one more for each method with its own quota.
/// Each entry of a batch is charged like a single call. A notification over the limit is dropped. Full
/// buckets are removed, and callers beyond [`callers`](Self::callers) share one bucket per quota. Clones
/// share the buckets.
///
/// # Callers
/// A caller is identified by its [`Identity`](super::Identity), so put [`Auth`](super::Auth) around this
/// layer. A caller without an identity is identified by its IP address or, if it has none, by its
/// connection. Only the first 64 bits of an IPv6 address count, because one host usually has all
/// addresses of such a network.
///
/// Callers with none of these share one bucket: those of a [`Responder`](crate::Responder), of an
/// [`HttpService`](crate::transport::http::HttpService) whose application does not set the remote address,
/// and of HTTP over a Unix socket. [`key`](Self::key) identifies callers in another way.
///
/// All connections of an address share its bucket. For a limit per connection, add a new layer for each
/// connection, in [`Server::serve_with`](crate::Server::serve_with). Over plain HTTP this limits nothing, because
/// each call is a connection of its own there.
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
///
/// Per connection:
///
/// ```no_run
/// # use antiphon::layer::{Quota, RateLimit};
/// # use antiphon::{Handler, Router, Server};
/// # async fn example(server: Server, router: Router) -> std::io::Result<()> {
/// server.serve_with(move |_, _| router.clone().layer(RateLimit::new(Quota::per_second(100)))).await
/// # }
/// ```
#[derive(Clone)]
pub struct RateLimit {
    quotas: Arc<Quotas>,
    buckets: Arc<Buckets>,
}

#[derive(Clone)]
struct Quotas {
    default: Quota,
    methods: HashMap<Box<str>, Quota>,
    /// Computes the key of a caller. `None` for the default.
    key: Option<KeyHash>,
}

/// Computes the hash of a key of the application. Only the hash is kept, so that long keys cost nothing.
type KeyHash = Arc<dyn Fn(&IncomingCall, &RandomState) -> u64 + Send + Sync>;

struct Buckets {
    start: Instant,
    /// The key of the hash is random, so that a caller cannot choose a name that shares the bucket of
    /// another caller.
    hasher: RandomState,
    shards: [Mutex<BucketShard>; SHARDS],
    /// The maximum number of buckets per shard.
    capacity: usize,
}

#[derive(Default)]
struct BucketShard {
    /// The time at which each bucket is full again, by the hash of its key.
    full_at: HashMap<u64, u128>,
    /// The buckets that callers beyond the capacity share, one per quota.
    shared: HashMap<Quota, u128>,
    /// The time of the next search for full buckets.
    next_sweep: u64,
}

impl RateLimit {
    /// Applies this quota to each caller, for all methods together.
    pub fn new(quota: Quota) -> Self {
        let quotas = Quotas { default: quota, methods: HashMap::new(), key: None };
        Self { quotas: Arc::new(quotas), buckets: Arc::new(Buckets::new(CALLERS)) }
    }

    /// Sets a separate quota for this method. Its calls are then not counted with the other methods.
    #[must_use]
    pub fn method(mut self, name: &str, quota: Quota) -> Self {
        Arc::make_mut(&mut self.quotas).methods.insert(name.into(), quota);
        self
    }

    /// Identifies callers by a key: calls with equal keys share a quota. The key replaces the identity, the
    /// address and the connection.
    ///
    /// A key that a caller can choose freely, such as an unverified header, lets it use as many quotas as
    /// it likes. So take the key from a verified identity:
    ///
    /// ```
    /// use antiphon::layer::{Auth, Quota, RateLimit};
    /// use antiphon::{Handler, Identity, Router};
    ///
    /// struct Tenant(u64);
    ///
    /// # let router = Router::new();
    /// let by_tenant = RateLimit::new(Quota::per_second(100)).key(|call| {
    ///     let tenant = call.cx.identity().and_then(|identity| identity.get::<Tenant>());
    ///     tenant.map(|tenant| tenant.0)
    /// });
    /// let auth = Auth::new().bearer("s3cret", Identity::new("ada").with(Tenant(7)));
    /// let service = router.layer(by_tenant).layer(auth);
    /// # drop(service);
    /// ```
    #[must_use]
    pub fn key<K: Hash>(
        mut self,
        key: impl Fn(&IncomingCall) -> K + Send + Sync + 'static,
    ) -> Self {
        let hash: KeyHash = Arc::new(move |call, hasher| hasher.hash_one(key(call)));
        Arc::make_mut(&mut self.quotas).key = Some(hash);
        self
    }

    /// Sets the maximum number of buckets (default 65,536). A caller needs one bucket, and one more for
    /// each method with its own quota.
    ///
    /// This creates new buckets: clones that exist keep the old ones, and are counted separately.
    #[must_use]
    pub fn callers(mut self, callers: usize) -> Self {
        self.buckets = Arc::new(Buckets::new(callers));
        self
    }

    fn charge(&self, request: &IncomingCall) -> Result<(), Duration> {
        let method = request.call.method.as_str();
        let caller = match &self.quotas.key {
            Some(key) => RateKey::Custom(key(request, &self.buckets.hasher)),
            None => RateKey::of(&request.cx),
        };
        match self.quotas.methods.get(method) {
            Some(quota) => self.buckets.charge(*quota, &(caller, Some(method))),
            None => self.buckets.charge(self.quotas.default, &(caller, None)),
        }
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("quota", &self.quotas.default).finish_non_exhaustive()
    }
}

/// The caller that a call is charged to.
#[derive(Hash)]
enum RateKey<'a> {
    Identity(&'a str),
    Address(IpAddr),
    /// A connection without an address.
    Connection(u64),
    /// The hash of a key of the application.
    Custom(u64),
}

impl<'a> RateKey<'a> {
    fn of(cx: &'a Context) -> Self {
        match (cx.identity(), cx.connection().remote, cx.peer()) {
            (Some(identity), ..) => Self::Identity(identity.name()),
            (None, Some(address), _) => Self::Address(network(address.ip())),
            (None, None, Ok(peer)) => Self::Connection(peer.connection().id()),
            (None, None, Err(_)) => Self::Connection(0),
        }
    }
}

/// The network that an address is counted as. An IPv4-mapped IPv6 address counts as the IPv4 address,
/// and any other IPv6 address as its /64 network.
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
            capacity: callers.div_ceil(SHARDS),
        }
    }

    fn charge(&self, quota: Quota, key: &(RateKey<'_>, Option<&str>)) -> Result<(), Duration> {
        let key = self.hasher.hash_one(key);
        let now = nanos(self.start.elapsed());
        let shard = &self.shards[(key % SHARDS as u64) as usize];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        quota.charge(shard.bucket(quota, key, now, self.capacity), now)
    }
}

impl BucketShard {
    fn bucket(&mut self, quota: Quota, key: u64, now: u64, capacity: usize) -> &mut u128 {
        if self.full_at.len() >= capacity && !self.full_at.contains_key(&key) {
            if now >= self.next_sweep {
                self.next_sweep = now.saturating_add(SWEEP);
                self.full_at.retain(|_, full_at| *full_at > u128::from(now));
            }
            if self.full_at.len() >= capacity {
                return self.shared.entry(quota).or_default();
            }
        }
        self.full_at.entry(key).or_default()
    }
}

impl<S: CallService<IncomingCall>> Policy<S, IncomingCall> for RateLimit {
    type Future = ReadyCall<S, IncomingCall>;

    fn call(&self, inner: &mut S, request: IncomingCall) -> Self::Future {
        match self.charge(&request) {
            Ok(()) => ReadyCall::new(inner, request),
            Err(wait) => ReadyCall::rejected(ErrorObject::rate_limited(wait)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_bucket_holds_a_burst_and_refills_with_time() {
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
        assert_eq!(taken, 3, "a bucket never holds more than its burst");
    }

    #[test]
    fn a_burst_of_long_intervals_is_not_exceeded() {
        for time in
            [Duration::from_nanos(u64::MAX / 2), Duration::from_nanos(u64::MAX), Duration::MAX]
        {
            for burst in [1, 3, 1_000] {
                let quota = Quota::new(1, time).burst(burst);
                let (mut bucket, now) = (0, 5 * SECOND);
                let allowed = (0..2_000).filter(|_| quota.charge(&mut bucket, now).is_ok()).count();
                assert_eq!(allowed, burst as usize, "{time:?}");
                let next = quota.charge(&mut bucket, now);
                assert_eq!(next, Err(Duration::from_nanos(quota.interval)), "{time:?}");
            }
        }
        let most = Quota::new(1, Duration::MAX).burst(u32::MAX);
        let mut bucket = u128::from(most.interval) * u128::from(u32::MAX - 1);
        assert!(most.charge(&mut bucket, 0).is_ok());
        assert!(most.charge(&mut bucket, 0).is_err());
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let mut shard = BucketShard::default();
        let quota = Quota::per_second(1);
        for key in 0..1_000 {
            let _ = quota.charge(shard.bucket(quota, key, 0, 8), 0);
        }
        assert_eq!(shard.full_at.len(), 8);
        assert!(
            quota.charge(shard.bucket(quota, 3, 0, 8), 0).is_err(),
            "a known caller keeps its bucket"
        );
        assert!(
            quota.charge(shard.bucket(quota, 77, 0, 8), 0).is_err(),
            "further callers share a bucket"
        );
        assert!(quota.charge(shard.bucket(quota, 77, 2 * SECOND, 8), 2 * SECOND).is_ok());
        assert_eq!(shard.full_at.len(), 1, "full buckets are removed");
    }

    #[test]
    fn each_quota_has_a_shared_bucket_of_its_own() {
        let mut shard = BucketShard::default();
        let (slow, fast) = (Quota::new(1, Duration::from_secs(3_600)), Quota::per_second(100));
        assert!(slow.charge(shard.bucket(slow, 1, 0, 0), 0).is_ok());
        assert!(slow.charge(shard.bucket(slow, 2, 0, 0), 0).is_err());
        for key in 0..100 {
            assert!(fast.charge(shard.bucket(fast, key, 0, 0), 0).is_ok());
        }
        assert!(fast.charge(shard.bucket(fast, 100, 0, 0), 0).is_err());
    }

    #[test]
    fn an_address_counts_as_its_network() {
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
