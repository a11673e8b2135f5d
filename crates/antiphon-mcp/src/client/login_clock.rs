//! A clock that stands still while the user logs in.
//!
//! A timeout is for the server. A login takes as long as the user needs, and the source of tokens limits it. The calls of
//! a client share its token, so the clock is one for all of them.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// A clock that stands still while the user logs in.
#[derive(Default)]
pub(super) struct LoginClock(watch::Sender<Logins>);

#[derive(Default)]
struct Logins {
    running: usize,
    /// When the first of the running logins began.
    since: Option<Instant>,
    /// The time of all logins that have ended.
    total: Duration,
}

impl Logins {
    fn time(&self) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl LoginClock {
    /// Waits for a token, while the clock stands still.
    pub(super) async fn stopped<T>(&self, login: impl Future<Output = T>) -> T {
        let _running = RunningLogin::new(&self.0);
        login.await
    }

    pub(super) fn timer(&self) -> Timer<'_> {
        Timer { clock: self, start: Instant::now(), logins: self.0.borrow().time() }
    }

    /// Limits a wait; `None` if it takes longer.
    pub(super) async fn timeout<T>(
        &self,
        limit: Duration,
        wait: impl Future<Output = T>,
    ) -> Option<T> {
        let timer = self.timer();
        tokio::select! {
            biased;
            outcome = wait => Some(outcome),
            () = timer.reach(limit) => None,
        }
    }
}

/// Measures a time without logins.
pub(super) struct Timer<'a> {
    clock: &'a LoginClock,
    start: Instant,
    /// The time of all logins before the start.
    logins: Duration,
}

impl Timer<'_> {
    pub(super) fn elapsed(&self) -> Duration {
        let logins = self.clock.0.borrow().time().saturating_sub(self.logins);
        self.start.elapsed().saturating_sub(logins)
    }

    /// Waits until this time has elapsed.
    pub(super) async fn reach(&self, elapsed: Duration) {
        loop {
            let rest = elapsed.saturating_sub(self.elapsed());
            if rest.is_zero() {
                return;
            }
            sleep(rest).await;
            // The sender is borrowed, so this does not fail.
            drop(self.clock.0.subscribe().wait_for(|logins| logins.running == 0).await);
        }
    }
}

/// Ends a login on drop.
struct RunningLogin<'a>(&'a watch::Sender<Logins>);

impl<'a> RunningLogin<'a> {
    fn new(logins: &'a watch::Sender<Logins>) -> Self {
        logins.send_if_modified(|logins| {
            logins.running += 1;
            logins.since.get_or_insert_with(Instant::now);
            false
        });
        Self(logins)
    }
}

impl Drop for RunningLogin<'_> {
    fn drop(&mut self) {
        self.0.send_if_modified(|logins| {
            logins.running = logins.running.saturating_sub(1);
            if logins.running == 0 {
                logins.total = logins.time();
                logins.since = None;
            }
            logins.running == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_time_of_logins_does_not_count() {
        let clock = LoginClock::default();
        let start = Instant::now();
        // Two logins overlap, from second 1 to 5 and from second 3 to 8; a third one is abandoned.
        let login = async |begin: u32, end: u32| {
            sleep(SECOND * begin).await;
            clock.stopped(sleep(SECOND * (end - begin))).await;
        };
        let abandoned = async {
            sleep(Duration::from_millis(9500)).await;
            assert!(tokio::time::timeout(SECOND, clock.stopped(login(0, 60))).await.is_err());
        };
        let timer = clock.timer();
        let reached = async {
            timer.reach(SECOND * 2).await;
            assert_eq!(start.elapsed().as_secs(), 9);
            timer.reach(SECOND * 4).await;
            assert_eq!(start.elapsed().as_secs(), 12);
        };
        tokio::join!(login(1, 5), login(3, 8), abandoned, reached);
        assert_eq!(timer.elapsed().as_secs(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_after_its_limit() {
        let clock = LoginClock::default();
        let wait = async {
            clock.stopped(sleep(SECOND * 300)).await;
            sleep(SECOND * 60).await;
        };
        assert!(clock.timeout(SECOND * 60, wait).await.is_some());
        let start = Instant::now();
        let wait = async {
            clock.stopped(sleep(SECOND * 300)).await;
            std::future::pending::<()>().await;
        };
        assert!(clock.timeout(SECOND * 60, wait).await.is_none());
        assert_eq!(start.elapsed().as_secs(), 360);
    }
}
