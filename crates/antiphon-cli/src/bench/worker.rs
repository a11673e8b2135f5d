//! The life of one connection: it connects, calls, and connects again after the peer closes, until the
//! round is over.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antiphon_check::raw::{self, RawConnection, ResolvedTarget};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::config::BenchConfig;
use super::connection::{BenchConnection, BenchEnd, lock};
use super::pacer::Pacer;
use super::stats::{FailedCallKind, FailedCalls, RoundStats};

/// The first wait before a reconnect. Each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// The number of consecutive failures that ends a round of `--count`, which has no time limit.
const MAX_FAILURES: u32 = 8;

/// One connection of a round.
pub(super) struct Worker {
    pub(super) config: Arc<BenchConfig>,
    pub(super) target: Arc<ResolvedTarget>,
    pub(super) pacer: Pacer,
    pub(super) stats: Arc<Mutex<RoundStats>>,
    /// Reports that the connection is open or has failed. Dropping it reports the end.
    pub(super) ready: mpsc::UnboundedSender<io::Result<()>>,
    /// Receives the start time of the round once all connections are ready.
    pub(super) go: watch::Receiver<Option<Instant>>,
}

impl Worker {
    pub(super) async fn run(mut self) {
        let mut link = raw::connect(&self.target, self.config.connect_timeout).await;
        let ready = link
            .as_ref()
            .map(|_| ())
            .map_err(|error| io::Error::new(error.kind(), error.to_string()));
        let _ = self.ready.send(ready);
        let Ok(epoch) =
            self.go.wait_for(Option::is_some).await.map(|go| go.unwrap_or_else(Instant::now))
        else {
            return;
        };
        let mut failures = 0;
        loop {
            let is_working = self.call_until_end(link, epoch).await;
            let Some(is_working) = is_working else { break };
            failures = if is_working { 0 } else { failures + 1 };
            if failures > 0 {
                sleep(wait(failures).min(self.time_left(epoch))).await;
            }
            let is_given_up = failures >= MAX_FAILURES && self.pacer.is_counted();
            if is_given_up || self.pacer.is_over(nanos(epoch)) {
                break;
            }
            let timeout = self.time_left(epoch);
            let timeout = self.config.connect_timeout.map_or(timeout, |most| most.min(timeout));
            link = raw::connect(&self.target, Some(timeout)).await;
        }
        self.record_missed(epoch);
    }

    /// Calls until the connection ends. Returns `None` when all calls are done, else whether the next
    /// connection may follow without a wait.
    async fn call_until_end(
        &mut self,
        link: io::Result<RawConnection>,
        epoch: Instant,
    ) -> Option<bool> {
        let link = match link {
            Ok(link) => link,
            Err(error) => {
                let failed = FailedCalls::new(FailedCallKind::Connect, 1, error.to_string());
                lock(&self.stats).record_failure(failed, nanos(epoch));
                return Some(false);
            }
        };
        let connection =
            BenchConnection::new(link, &self.config, &mut self.pacer, &self.stats, epoch);
        let (end, had_replies) = Box::pin(connection.run()).await;
        if end == BenchEnd::Closed {
            lock(&self.stats).reconnects += 1;
        }
        (end != BenchEnd::Done).then_some(had_replies)
    }

    /// Records the messages that were not sent.
    fn record_missed(&mut self, epoch: Instant) {
        let calls = self.pacer.missed() * self.config.request.calls;
        let failed = match self.pacer.is_counted() {
            true => {
                FailedCalls::new(FailedCallKind::Unsent, calls, "not sent: the server was gone")
            }
            false => FailedCalls::new(
                FailedCallKind::Late,
                calls,
                "due, but not sent before the end of the round",
            ),
        };
        if calls > 0 {
            lock(&self.stats).record_failure(failed, nanos(epoch));
        }
    }

    fn time_left(&self, epoch: Instant) -> Duration {
        Duration::from_nanos(self.pacer.end().saturating_sub(nanos(epoch)))
    }
}

fn wait(failures: u32) -> Duration {
    LONGEST_WAIT.min(FIRST_WAIT * 2_u32.pow((failures - 1).min(10)))
}

fn nanos(epoch: Instant) -> u64 {
    epoch.elapsed().as_nanos() as u64
}
