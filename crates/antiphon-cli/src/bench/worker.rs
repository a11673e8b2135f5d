//! One connection's life: it is made, used, and made again when the peer ends it, until the round
//! is over.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antiphon_check::raw::{self, RawConnection, Target};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::pace::Pace;
use super::plan::Plan;
use super::talk::{End, Talk, lock};
use super::tally::{Fault, Kind, Tally};

/// The first wait before a connection is made again; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// Failures in a row after which a count is given up: no time would end it.
const MAX_FAILURES: u32 = 8;

/// One connection of a round.
pub(super) struct Worker {
    pub(super) plan: Arc<Plan>,
    pub(super) target: Arc<Target>,
    pub(super) pace: Pace,
    pub(super) tally: Arc<Mutex<Tally>>,
    /// Where it says that it is connected, or why not; and, by dropping it, that it is done.
    pub(super) ready: mpsc::UnboundedSender<io::Result<()>>,
    /// When the round begins, once all are.
    pub(super) go: watch::Receiver<Option<Instant>>,
}

impl Worker {
    pub(super) async fn run(mut self) {
        let mut link = raw::connect(&self.target, self.plan.patience).await;
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
            let is_well = self.use_up(link, epoch).await;
            let Some(is_well) = is_well else { break };
            failures = if is_well { 0 } else { failures + 1 };
            if failures > 0 {
                sleep(wait(failures).min(self.time_left(epoch))).await;
            }
            let is_hopeless = failures >= MAX_FAILURES && self.pace.is_counted();
            if is_hopeless || self.pace.is_over(nanos(epoch)) {
                break;
            }
            let patience = self.time_left(epoch);
            let patience = self.plan.patience.map_or(patience, |most| most.min(patience));
            link = raw::connect(&self.target, Some(patience)).await;
        }
        self.count_missed(epoch);
    }

    /// Calls as long as the connection lasts. None when all is done; else whether the next one may
    /// follow at once.
    async fn use_up(&mut self, link: io::Result<RawConnection>, epoch: Instant) -> Option<bool> {
        let link = match link {
            Ok(link) => link,
            Err(error) => {
                let fault = Fault::new(Kind::Connect, 1, error.to_string());
                lock(&self.tally).fault(fault, nanos(epoch));
                return Some(false);
            }
        };
        let talk = Talk::new(link, &self.plan, &mut self.pace, &self.tally, epoch);
        let (end, was_of_use) = Box::pin(talk.run()).await;
        if end == End::Closed {
            lock(&self.tally).reconnects += 1;
        }
        (end != End::Done).then_some(was_of_use)
    }

    /// What should have been sent and was not.
    fn count_missed(&mut self, epoch: Instant) {
        let calls = self.pace.missed() * self.plan.request.calls;
        let fault = match self.pace.is_counted() {
            true => Fault::new(Kind::Unsent, calls, "the peer was gone before they were sent"),
            false => Fault::new(Kind::Late, calls, "due, but not sent before the end"),
        };
        if calls > 0 {
            lock(&self.tally).fault(fault, nanos(epoch));
        }
    }

    fn time_left(&self, epoch: Instant) -> Duration {
        Duration::from_nanos(self.pace.end().saturating_sub(nanos(epoch)))
    }
}

fn wait(failures: u32) -> Duration {
    LONGEST_WAIT.min(FIRST_WAIT * 2_u32.pow((failures - 1).min(10)))
}

fn nanos(epoch: Instant) -> u64 {
    epoch.elapsed().as_nanos() as u64
}
