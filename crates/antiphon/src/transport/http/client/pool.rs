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
const MAX_RESTING: usize = 512;
/// For ever: a time that no clock overflows by.
const MAX_REST: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub(super) struct Pool<C> {
    shelf: Mutex<Shelf<C>>,
    /// How long a connection may rest.
    rest: Duration,
}

#[derive(Debug)]
struct Shelf<C> {
    /// The newest is the last.
    resting: Vec<Resting<C>>,
    sweeper: Option<AbortHandle>,
}

#[derive(Debug)]
struct Resting<C> {
    connection: C,
    since: Instant,
    /// Whose it is: a socket is woken by the runtime that made it, and dies with it.
    runtime: Option<runtime::Id>,
}

fn this_runtime() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl<C: Send + 'static> Pool<C> {
    pub(super) fn new(rest: Duration) -> Arc<Self> {
        let shelf = Shelf { resting: Vec::new(), sweeper: None };
        Arc::new(Self { shelf: Mutex::new(shelf), rest: rest.min(MAX_REST) })
    }

    /// The connection of this runtime that rested least, and for how long it did.
    pub(super) fn take(&self) -> Option<(C, Duration)> {
        let here = this_runtime();
        let Resting { connection, since, .. } = {
            let mut shelf = self.shelf();
            let place = shelf.resting.iter().rposition(|resting| resting.runtime == here)?;
            shelf.resting.remove(place)
        };
        let rested = since.elapsed();
        (rested < self.rest).then_some((connection, rested))
    }

    /// Keeps a connection for the next exchange. The oldest makes room, which may be of a runtime that
    /// is gone.
    pub(super) fn give(self: &Arc<Self>, connection: C) {
        // Closed once the lock is given up.
        let _oldest;
        let mut shelf = self.shelf();
        let is_full = shelf.resting.len() == MAX_RESTING;
        _oldest = is_full.then(|| shelf.resting.remove(0));
        shelf.resting.push(Resting { connection, since: Instant::now(), runtime: this_runtime() });
        // A runtime that is gone has ended its tasks.
        if shelf.sweeper.as_ref().is_none_or(AbortHandle::is_finished)
            && let Ok(runtime) = Handle::try_current()
        {
            shelf.sweeper = Some(runtime.spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    /// Drops what has rested for too long. When to look again, if anything is left.
    fn sweep(&self) -> Option<Instant> {
        let mut shelf = self.shelf();
        let now = Instant::now();
        let old = shelf.resting.partition_point(|resting| now - resting.since >= self.rest);
        let old: Vec<_> = shelf.resting.drain(..old).collect();
        let next = shelf.resting.first().map(|resting| resting.since + self.rest);
        if next.is_none() {
            shelf.sweeper = None;
        }
        drop(shelf);
        drop(old);
        next
    }
}

impl<C> Pool<C> {
    fn shelf(&self) -> MutexGuard<'_, Shelf<C>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Drop for Pool<C> {
    fn drop(&mut self) {
        if let Some(sweeper) = self.shelf().sweeper.take() {
            sweeper.abort();
        }
    }
}

/// Looks when the oldest has rested for long enough, until there is none.
async fn sweep<C: Send + 'static>(pool: Weak<Pool<C>>) {
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
        let pool = Pool::new(LONG);
        assert!(pool.take().is_none());
        (1..=3).for_each(|n| pool.give(n));
        let taken = || pool.take().map(|(n, _)| n);
        assert_eq!([taken(), taken()], [Some(3), Some(2)]);
        pool.give(4);
        assert_eq!([taken(), taken(), taken()], [Some(4), Some(1), None]);
    }

    #[tokio::test]
    async fn no_more_rest_than_may() {
        let pool = Pool::new(LONG);
        (0..2 * MAX_RESTING).for_each(|n| pool.give(n));
        assert_eq!(std::iter::from_fn(|| pool.take()).count(), MAX_RESTING);
    }

    #[tokio::test]
    async fn what_has_rested_for_too_long_is_not_taken() {
        let pool = Pool::new(Duration::ZERO);
        pool.give(1);
        assert!(pool.take().is_none());
    }

    #[tokio::test]
    async fn what_has_rested_for_too_long_goes_by_itself() {
        let pool = Pool::new(Duration::from_millis(1));
        for _ in 0..2 {
            let (connection, mut gone) = tokio::sync::mpsc::channel::<()>(1);
            pool.give(connection);
            let gone = tokio::time::timeout(Duration::from_secs(10), gone.recv()).await;
            assert!(gone.expect("it never goes").is_none());
        }
    }

    #[tokio::test]
    async fn connections_may_rest_for_ever() {
        let pool = Pool::new(Duration::MAX);
        pool.give(1);
        tokio::task::yield_now().await;
        assert_eq!(pool.take().unwrap().0, 1);
    }

    #[tokio::test]
    async fn a_pool_that_is_dropped_leaves_no_task() {
        let pool = Pool::new(LONG);
        pool.give(1);
        let sweeper = pool.shelf().sweeper.clone().unwrap();
        drop(pool);
        while !sweeper.is_finished() {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn a_pool_outlives_its_runtime() {
        let pool = Pool::new(LONG);
        for n in 0..2 {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { pool.give(n) });
            assert!(!pool.shelf().sweeper.as_ref().unwrap().is_finished());
        }
        pool.give(2);
        assert_eq!(pool.take().unwrap().0, 2);
    }
}
