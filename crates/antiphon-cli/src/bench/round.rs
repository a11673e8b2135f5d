//! One round at one endpoint: connections are dealt out to loader threads, begin together, and are
//! counted together.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use antiphon::CancellationToken;
use antiphon_check::raw::Target;
use tokio::signal::unix::Signal;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::interval;

use super::live::Live;
use super::plan::Plan;
use super::talk::lock;
use super::tally::Tally;
use super::worker::Worker;
use crate::exit::{Exit, Failure};

/// How often the live line is drawn.
const TICK: Duration = Duration::from_millis(200);

/// What a round came to.
pub(super) struct Measured {
    pub(super) tally: Tally,
    pub(super) seconds: f64,
    /// Ctrl-C ended it.
    pub(super) is_cut: bool,
}

/// A round under way.
struct Round<'a> {
    plan: &'a Arc<Plan>,
    target: &'a Arc<Target>,
    stop: CancellationToken,
    /// One for each thread.
    tallies: Vec<Arc<Mutex<Tally>>>,
    threads: Vec<JoinHandle<()>>,
    readiness: mpsc::UnboundedReceiver<io::Result<()>>,
    go: watch::Sender<Option<Instant>>,
}

/// Runs a round. In the first, a connection that cannot be made is an error; in a later one, where
/// the server is known, it is counted.
pub(super) async fn run(
    plan: &Arc<Plan>,
    target: &Arc<Target>,
    is_first: bool,
    live: &Live,
    interrupt: &mut Signal,
) -> Result<Measured, Failure> {
    let mut round = Round::start(plan, target)?;
    let connected = tokio::select! {
        connected = round.connected(is_first) => Some(connected),
        _ = interrupt.recv() => None,
    };
    let epoch = Instant::now();
    let is_cut = match connected {
        Some(Ok(())) => {
            let _ = round.go.send(Some(epoch));
            round.finished(epoch, live, interrupt).await
        }
        Some(Err(failure)) => {
            round.end()?;
            return Err(failure);
        }
        None => true,
    };
    let elapsed = epoch.elapsed();
    let tally = round.end()?;
    let seconds = seconds(&tally, elapsed, is_cut);
    Ok(Measured { tally, seconds, is_cut })
}

impl<'a> Round<'a> {
    /// Starts the threads, which connect and then wait.
    fn start(plan: &'a Arc<Plan>, target: &'a Arc<Target>) -> Result<Self, Failure> {
        let (ready, readiness) = mpsc::unbounded_channel();
        let (go, gone) = watch::channel(None);
        let (tallies, threads, stop) = (Vec::new(), Vec::new(), CancellationToken::new());
        let mut round = Self { plan, target, stop, tallies, threads, readiness, go };
        for first in 0..plan.threads {
            let tally = Arc::new(Mutex::new(Tally::new(plan.window)));
            let connections = (first..plan.connections).step_by(plan.threads);
            let workers = connections.map(|connection| Worker {
                plan: plan.clone(),
                target: target.clone(),
                pace: plan.pace(target, connection),
                tally: tally.clone(),
                ready: ready.clone(),
                go: gone.clone(),
            });
            round.threads.push(loader(workers.collect(), round.stop.clone())?);
            round.tallies.push(tally);
        }
        Ok(round)
    }

    /// Waits until every connection is made, or has failed to be.
    async fn connected(&mut self, is_first: bool) -> Result<(), Failure> {
        for _ in 0..self.plan.connections {
            match self.readiness.recv().await {
                Some(Err(error)) if is_first => return Err(self.target.unreachable(&error).into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits until every connection is done; true where Ctrl-C came first.
    async fn finished(&mut self, epoch: Instant, live: &Live, interrupt: &mut Signal) -> bool {
        let mut ticks = interval(TICK);
        loop {
            tokio::select! {
                done = self.readiness.recv() => if done.is_none() {
                    return false;
                },
                _ = interrupt.recv() => return true,
                _ = ticks.tick(), if live.is_on => {
                    let calls = self.tallies.iter().map(|tally| lock(tally).calls).sum();
                    live.draw(calls, epoch.elapsed(), self.plan);
                }
            }
        }
    }

    /// Ends what still runs, and counts it all together.
    fn end(self) -> Result<Tally, Failure> {
        self.stop.cancel();
        for thread in self.threads {
            let crashed = |_| Failure::new(Exit::Transport, "a loader thread has crashed");
            thread.join().map_err(crashed)?;
        }
        let mut all = Tally::new(self.plan.window);
        self.tallies.iter().for_each(|tally| all.merge(&lock(tally)));
        Ok(all)
    }
}

/// A thread with a runtime of its own, and a task for each connection.
fn loader(workers: Vec<Worker>, stop: CancellationToken) -> Result<JoinHandle<()>, Failure> {
    let failed = |error: io::Error| {
        Failure::new(Exit::Transport, format!("no loader thread starts: {error}"))
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let work = async move {
        let mut tasks: JoinSet<()> = workers.into_iter().map(Worker::run).collect();
        while let Some(done) = tasks.join_next().await {
            done.expect("no connection crashes");
        }
    };
    let until_stopped = async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    };
    thread::Builder::new()
        .name("loader".to_owned())
        .spawn(move || runtime.block_on(until_stopped))
        .map_err(failed)
}

/// How long was measured: all of the time, or until the last of a count was answered.
fn seconds(tally: &Tally, elapsed: Duration, is_cut: bool) -> f64 {
    let elapsed = elapsed.as_nanos() as u64;
    let until = match tally.window.end {
        Some(end) if is_cut => end.min(elapsed),
        Some(end) => end,
        None if is_cut || tally.calls == 0 => elapsed,
        None => tally.last,
    };
    until.saturating_sub(tally.window.start) as f64 / 1e9
}
