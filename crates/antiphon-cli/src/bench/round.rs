//! A round at one endpoint. Its connections are spread over threads, start at the same time and share
//! one result.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use antiphon::CancellationToken;
use antiphon_check::raw::ResolvedTarget;
use tokio::signal::unix::Signal;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::interval;

use super::config::BenchConfig;
use super::connection::lock;
use super::progress_line::ProgressLine;
use super::stats::RoundStats;
use super::worker::Worker;
use crate::exit::{CommandError, Exit};

/// The interval of the progress line.
const TICK: Duration = Duration::from_millis(200);

/// The result of a round.
pub(super) struct RoundResult {
    pub(super) stats: RoundStats,
    pub(super) seconds: f64,
    /// Whether Ctrl-C ended the round.
    pub(super) is_cut: bool,
}

/// A running round.
struct Round<'a> {
    config: &'a Arc<BenchConfig>,
    target: &'a Arc<ResolvedTarget>,
    stop: CancellationToken,
    /// One per thread.
    stats: Vec<Arc<Mutex<RoundStats>>>,
    threads: Vec<JoinHandle<()>>,
    readiness: mpsc::UnboundedReceiver<io::Result<()>>,
    go: watch::Sender<Option<Instant>>,
}

/// Runs a round. A connection that fails to open is an error in the first round. In a later round it
/// is counted, since the server was reachable before.
pub(super) async fn run(
    config: &Arc<BenchConfig>,
    target: &Arc<ResolvedTarget>,
    is_first: bool,
    progress: &ProgressLine,
    interrupt: &mut Signal,
) -> Result<RoundResult, CommandError> {
    let mut round = Round::start(config, target)?;
    let connected = tokio::select! {
        connected = round.connected(is_first) => Some(connected),
        _ = interrupt.recv() => None,
    };
    let epoch = Instant::now();
    let is_cut = match connected {
        Some(Ok(())) => {
            let _ = round.go.send(Some(epoch));
            round.finished(epoch, progress, interrupt).await
        }
        Some(Err(failure)) => {
            round.end()?;
            return Err(failure);
        }
        None => true,
    };
    let elapsed = epoch.elapsed();
    let stats = round.end()?;
    let seconds = seconds(&stats, elapsed, is_cut);
    Ok(RoundResult { stats, seconds, is_cut })
}

impl<'a> Round<'a> {
    /// Starts the threads, which connect and then wait for `go`.
    fn start(
        config: &'a Arc<BenchConfig>,
        target: &'a Arc<ResolvedTarget>,
    ) -> Result<Self, CommandError> {
        let (ready, readiness) = mpsc::unbounded_channel();
        let (go, gone) = watch::channel(None);
        let (stats, threads, stop) = (Vec::new(), Vec::new(), CancellationToken::new());
        let mut round = Self { config, target, stop, stats, threads, readiness, go };
        for first in 0..config.threads {
            let stats = Arc::new(Mutex::new(RoundStats::new(config.window)));
            let connections = (first..config.connections).step_by(config.threads);
            let workers = connections.map(|connection| Worker {
                config: config.clone(),
                target: target.clone(),
                pacer: config.pacer(target, connection),
                stats: stats.clone(),
                ready: ready.clone(),
                go: gone.clone(),
            });
            round.threads.push(loader(workers.collect(), round.stop.clone())?);
            round.stats.push(stats);
        }
        Ok(round)
    }

    /// Waits until every connection is open or has failed.
    async fn connected(&mut self, is_first: bool) -> Result<(), CommandError> {
        for _ in 0..self.config.connections {
            match self.readiness.recv().await {
                Some(Err(error)) if is_first => return Err(self.target.unreachable(&error).into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits until every connection is done. Returns true after Ctrl-C.
    async fn finished(
        &mut self,
        epoch: Instant,
        progress: &ProgressLine,
        interrupt: &mut Signal,
    ) -> bool {
        let mut ticks = interval(TICK);
        loop {
            tokio::select! {
                done = self.readiness.recv() => if done.is_none() {
                    return false;
                },
                _ = interrupt.recv() => return true,
                _ = ticks.tick(), if progress.is_on => {
                    let calls = self.stats.iter().map(|stats| lock(stats).calls).sum();
                    progress.draw(calls, epoch.elapsed(), self.config);
                }
            }
        }
    }

    /// Stops the threads and merges their statistics.
    fn end(self) -> Result<RoundStats, CommandError> {
        self.stop.cancel();
        for thread in self.threads {
            let crashed = |_| CommandError::new(Exit::Transport, "a load thread panicked");
            thread.join().map_err(crashed)?;
        }
        let mut all = RoundStats::new(self.config.window);
        self.stats.iter().for_each(|stats| all.merge(&lock(stats)));
        Ok(all)
    }
}

/// Starts a thread with its own runtime and one task per connection.
fn loader(workers: Vec<Worker>, stop: CancellationToken) -> Result<JoinHandle<()>, CommandError> {
    let failed = |error: io::Error| {
        CommandError::new(Exit::Transport, format!("cannot start a load thread: {error}"))
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let work = async move {
        let mut tasks: JoinSet<()> = workers.into_iter().map(Worker::run).collect();
        while let Some(done) = tasks.join_next().await {
            done.expect("no connection task panics");
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

/// Returns the measured time: the whole window, or until the last reply of a count.
fn seconds(stats: &RoundStats, elapsed: Duration, is_cut: bool) -> f64 {
    let elapsed = elapsed.as_nanos() as u64;
    let until = match stats.window.end {
        Some(end) if is_cut => end.min(elapsed),
        Some(end) => end,
        None if is_cut || stats.calls == 0 => elapsed,
        None => stats.last,
    };
    until.saturating_sub(stats.window.start) as f64 / 1e9
}
