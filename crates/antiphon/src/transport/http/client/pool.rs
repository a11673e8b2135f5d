//! Connections that rest between two exchanges.
//!
//! The one that rested least is taken first, so that those beyond need grow old and go. None rests
//! for longer than it may: while there are any, a task sees to it. A connection that is in use is
//! not here, and one whose exchange was not finished never comes back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// The most that rest at once.
const MAX_IDLE: usize = 512;
/// For ever: a time that no clock overflows by.
const MAX_IDLE_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub(super) struct ConnectionPool<C> {
    state: Mutex<PoolState<C>>,
    /// How long a connection may rest.
    rest: Duration,
}

#[derive(Debug)]
struct PoolState<C> {
    /// The newest is the last.
    resting: Vec<IdleConnection<C>>,
    sweeper: Option<AbortHandle>,
}

#[derive(Debug)]
struct IdleConnection<C> {
    connection: C,
    since: Instant,
    /// Whose it is: a socket is woken by the runtime that made it, and dies with it.
    runtime: Option<runtime::Id>,
}

fn this_runtime() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl<C: Send + 'static> ConnectionPool<C> {
    pub(super) fn new(rest: Duration) -> Arc<Self> {
        let state = PoolState { resting: Vec::new(), sweeper: None };
        Arc::new(Self { state: Mutex::new(state), rest: rest.min(MAX_IDLE_TIMEOUT) })
    }

    /// The connection of this runtime that rested least, and for how long it did.
    pub(super) fn take(&self) -> Option<(C, Duration)> {
        let here = this_runtime();
        let IdleConnection { connection, since, .. } = {
            let mut state = self.state();
            let place = state.resting.iter().rposition(|resting| resting.runtime == here)?;
            state.resting.remove(place)
        };
        let rested = since.elapsed();
        (rested < self.rest).then_some((connection, rested))
    }

    /// Keeps a connection for the next exchange. The oldest makes room, which may be of a runtime that
    /// is gone.
    pub(super) fn give(self: &Arc<Self>, connection: C) {
        // Closed once the lock is given up.
        let _oldest;
        let mut state = self.state();
        let is_full = state.resting.len() == MAX_IDLE;
        _oldest = is_full.then(|| state.resting.remove(0));
        state.resting.push(IdleConnection {
            connection,
            since: Instant::now(),
            runtime: this_runtime(),
        });
        // A runtime that is gone has ended its tasks.
        if state.sweeper.as_ref().is_none_or(AbortHandle::is_finished)
            && let Ok(runtime) = Handle::try_current()
        {
            state.sweeper = Some(runtime.spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    /// Drops what has rested for too long. When to look again, if anything is left.
    fn sweep(&self) -> Option<Instant> {
        let mut state = self.state();
        let now = Instant::now();
        let old = state.resting.partition_point(|resting| now - resting.since >= self.rest);
        let old: Vec<_> = state.resting.drain(..old).collect();
        let next = state.resting.first().map(|resting| resting.since + self.rest);
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

/// Looks when the oldest has rested for long enough, until there is none.
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
        (1..=3).for_each(|n| pool.give(n));
        let taken = || pool.take().map(|(n, _)| n);
        assert_eq!([taken(), taken()], [Some(3), Some(2)]);
        pool.give(4);
        assert_eq!([taken(), taken(), taken()], [Some(4), Some(1), None]);
    }

    #[tokio::test]
    async fn no_more_rest_than_may() {
        let pool = ConnectionPool::new(LONG);
        (0..2 * MAX_IDLE).for_each(|n| pool.give(n));
        assert_eq!(std::iter::from_fn(|| pool.take()).count(), MAX_IDLE);
    }

    #[tokio::test]
    async fn what_has_rested_for_too_long_is_not_taken() {
        let pool = ConnectionPool::new(Duration::ZERO);
        pool.give(1);
        assert!(pool.take().is_none());
    }

    #[tokio::test]
    async fn what_has_rested_for_too_long_goes_by_itself() {
        let pool = ConnectionPool::new(Duration::from_millis(1));
        for _ in 0..2 {
            let (connection, mut gone) = tokio::sync::mpsc::channel::<()>(1);
            pool.give(connection);
            let gone = tokio::time::timeout(Duration::from_secs(10), gone.recv()).await;
            assert!(gone.expect("it never goes").is_none());
        }
    }

    #[tokio::test]
    async fn connections_may_rest_for_ever() {
        let pool = ConnectionPool::new(Duration::MAX);
        pool.give(1);
        tokio::task::yield_now().await;
        assert_eq!(pool.take().unwrap().0, 1);
    }

    #[tokio::test]
    async fn a_pool_that_is_dropped_leaves_no_task() {
        let pool = ConnectionPool::new(LONG);
        pool.give(1);
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
            runtime.block_on(async { pool.give(n) });
            assert!(!pool.state().sweeper.as_ref().unwrap().is_finished());
        }
        pool.give(2);
        assert_eq!(pool.take().unwrap().0, 2);
    }
}
