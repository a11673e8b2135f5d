//! Idle connections, kept for the next exchange.
//!
//! The connection that was idle for the shortest time is taken first, so that surplus connections reach
//! the idle timeout, when a task closes them. The task runs only while there are idle connections. A
//! connection in use is not in the pool, and one whose exchange was not finished never returns to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// The largest number of idle connections.
const MAX_IDLE: usize = 512;
/// The largest idle timeout: adding it to a clock cannot overflow.
const MAX_IDLE_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub(super) struct ConnectionPool<C> {
    state: Mutex<PoolState<C>>,
    /// The longest time that a connection stays idle.
    idle_timeout: Duration,
}

#[derive(Debug)]
struct PoolState<C> {
    /// The most recently used is the last.
    idle: Vec<IdleConnection<C>>,
    sweeper: Option<AbortHandle>,
}

#[derive(Debug)]
struct IdleConnection<C> {
    connection: C,
    since: Instant,
    /// The runtime of the connection: a socket is woken by the runtime that created it, and ends with it.
    runtime: Option<runtime::Id>,
}

fn this_runtime() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl<C: Send + 'static> ConnectionPool<C> {
    pub(super) fn new(idle_timeout: Duration) -> Arc<Self> {
        let state = PoolState { idle: Vec::new(), sweeper: None };
        Arc::new(Self {
            state: Mutex::new(state),
            idle_timeout: idle_timeout.min(MAX_IDLE_TIMEOUT),
        })
    }

    /// Takes the most recently used connection of this runtime, with its idle time.
    pub(super) fn take(&self) -> Option<(C, Duration)> {
        let here = this_runtime();
        let IdleConnection { connection, since, .. } = {
            let mut state = self.state();
            let place = state.idle.iter().rposition(|idle| idle.runtime == here)?;
            state.idle.remove(place)
        };
        let idle_time = since.elapsed();
        (idle_time < self.idle_timeout).then_some((connection, idle_time))
    }

    /// Keeps a connection for the next exchange. A full pool drops the oldest, which may belong to a
    /// runtime that has ended.
    pub(super) fn put(self: &Arc<Self>, connection: C) {
        // Closed after the lock is released.
        let _oldest;
        let mut state = self.state();
        let is_full = state.idle.len() == MAX_IDLE;
        _oldest = is_full.then(|| state.idle.remove(0));
        state.idle.push(IdleConnection {
            connection,
            since: Instant::now(),
            runtime: this_runtime(),
        });
        // A runtime that has ended has ended its tasks.
        if state.sweeper.as_ref().is_none_or(AbortHandle::is_finished)
            && let Ok(runtime) = Handle::try_current()
        {
            state.sweeper = Some(runtime.spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    /// Drops the connections over the idle timeout. Returns the time of the next sweep, if any are left.
    fn sweep(&self) -> Option<Instant> {
        let mut state = self.state();
        let now = Instant::now();
        let old = state.idle.partition_point(|idle| now - idle.since >= self.idle_timeout);
        let old: Vec<_> = state.idle.drain(..old).collect();
        let next = state.idle.first().map(|idle| idle.since + self.idle_timeout);
        if next.is_none() {
            state.sweeper = None;
        }
        drop(state);
        drop(old);
        next
    }
}

impl<C> ConnectionPool<C> {
    fn state(&self) -> MutexGuard<'_, PoolState<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Drop for ConnectionPool<C> {
    fn drop(&mut self) {
        if let Some(sweeper) = self.state().sweeper.take() {
            sweeper.abort();
        }
    }
}

/// Sweeps when the oldest connection reaches the idle timeout, until none is left.
async fn sweep<C: Send + 'static>(pool: Weak<ConnectionPool<C>>) {
    while let Some(next) = pool.upgrade().and_then(|pool| pool.sweep()) {
        sleep_until(next).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn the_newest_is_taken_first() {
        let pool = ConnectionPool::new(LONG);
        assert!(pool.take().is_none());
        (1..=3).for_each(|n| pool.put(n));
        let taken = || pool.take().map(|(n, _)| n);
        assert_eq!([taken(), taken()], [Some(3), Some(2)]);
        pool.put(4);
        assert_eq!([taken(), taken(), taken()], [Some(4), Some(1), None]);
    }

    #[tokio::test]
    async fn the_number_of_idle_connections_is_limited() {
        let pool = ConnectionPool::new(LONG);
        (0..2 * MAX_IDLE).for_each(|n| pool.put(n));
        assert_eq!(std::iter::from_fn(|| pool.take()).count(), MAX_IDLE);
    }

    #[tokio::test]
    async fn a_connection_over_the_idle_timeout_is_not_taken() {
        let pool = ConnectionPool::new(Duration::ZERO);
        pool.put(1);
        assert!(pool.take().is_none());
    }

    #[tokio::test]
    async fn a_connection_over_the_idle_timeout_is_closed_by_itself() {
        let pool = ConnectionPool::new(Duration::from_millis(1));
        for _ in 0..2 {
            let (connection, mut gone) = tokio::sync::mpsc::channel::<()>(1);
            pool.put(connection);
            let gone = tokio::time::timeout(Duration::from_secs(10), gone.recv()).await;
            assert!(gone.expect("it never goes").is_none());
        }
    }

    #[tokio::test]
    async fn connections_may_stay_idle_for_ever() {
        let pool = ConnectionPool::new(Duration::MAX);
        pool.put(1);
        tokio::task::yield_now().await;
        assert_eq!(pool.take().unwrap().0, 1);
    }

    #[tokio::test]
    async fn a_pool_that_is_dropped_leaves_no_task() {
        let pool = ConnectionPool::new(LONG);
        pool.put(1);
        let sweeper = pool.state().sweeper.clone().unwrap();
        drop(pool);
        while !sweeper.is_finished() {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn a_pool_outlives_its_runtime() {
        let pool = ConnectionPool::new(LONG);
        for n in 0..2 {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { pool.put(n) });
            assert!(!pool.state().sweeper.as_ref().unwrap().is_finished());
        }
        pool.put(2);
        assert_eq!(pool.take().unwrap().0, 2);
    }
}
