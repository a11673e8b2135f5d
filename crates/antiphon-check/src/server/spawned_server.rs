//! The server as a process of ours: started before the first case, and again when it dies.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::dialer::Dialer;
use crate::error::{CheckError, CheckErrorKind};
use crate::raw::{ProcessGroup, RawSocket};

/// How long a server may take until it can be connected to.
const START: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);
/// How long one that ends at once is tried again: its port is free only after a minute, where it does not
/// ask for less and was the first to close.
const AGAIN: Duration = Duration::from_secs(65);
const PAUSE: Duration = Duration::from_millis(200);

/// A server that was started here; it is killed when this is dropped, with all that it started.
pub(super) struct SpawnedServer {
    command: Vec<String>,
    group: ProcessGroup,
    child: Child,
}

impl SpawnedServer {
    /// Starts it, and waits until it listens.
    pub(super) async fn start(command: &str, dialer: &Dialer) -> Result<Self, CheckError> {
        let command = shell_words::split(command)
            .map_err(|error| CheckError::usage(format!("--spawn {command:?}: {error}")))?;
        if is_taken(dialer).await {
            let endpoint = &dialer.target.address;
            let what = format!("something listens on {endpoint} already, before --spawn");
            return Err(CheckError::usage(what)
                .hint("end it, or leave --spawn out to judge what runs there"));
        }
        let (group, child) = spawn(&command)?;
        let mut spawned = Self { command, group, child };
        spawned.wait_until_up(dialer).await?;
        Ok(spawned)
    }

    /// Starts it anew.
    pub(super) async fn restart(&mut self, dialer: &Dialer) -> Result<(), CheckError> {
        let deadline = Instant::now() + AGAIN;
        loop {
            self.group.kill();
            let _ = self.child.kill().await;
            (self.group, self.child) = spawn(&self.command)?;
            let Err(failure) = self.wait_until_up(dialer).await else { return Ok(()) };
            let has_ended = matches!(self.child.try_wait(), Ok(Some(_)));
            if !has_ended || Instant::now() >= deadline.min(dialer.deadline) {
                return Err(failure);
            }
            sleep(PAUSE).await;
        }
    }

    /// How it ended, if it did.
    pub(super) async fn ended(&mut self) -> Option<String> {
        let status = timeout(Duration::from_millis(100), self.child.wait()).await.ok()?.ok()?;
        Some(format!("the server's process ended: {status}"))
    }

    async fn wait_until_up(&mut self, dialer: &Dialer) -> Result<(), CheckError> {
        let deadline = dialer.deadline.min(Instant::now() + START);
        loop {
            let connected = dialer.connect(true).await;
            let command = self.command.join(" ");
            // Whoever answered instead is not the one that is to be judged.
            if let Ok(Some(status)) = self.child.try_wait() {
                let what = format!("`{command}` ended before it listened: {status}");
                return Err(CheckError::new(CheckErrorKind::Unreachable, what)
                    .hint("run it by hand to see what it says"));
            }
            let Err(fault) = connected else { return Ok(()) };
            if Instant::now() > deadline {
                let endpoint = &dialer.target.address;
                let what = format!("`{command}` runs, and {endpoint} cannot be reached: {fault}");
                return Err(CheckError::new(CheckErrorKind::Unreachable, what)
                    .hint("check that it listens where the endpoint says"));
            }
            sleep(STEP).await;
        }
    }
}

/// Whether somebody listens there, whatever is spoken.
async fn is_taken(dialer: &Dialer) -> bool {
    matches!(timeout(dialer.patience(), RawSocket::open(&dialer.target)).await, Ok(Ok(_)))
}

fn spawn(words: &[String]) -> Result<(ProcessGroup, Child), CheckError> {
    let (program, args) =
        words.split_first().ok_or_else(|| CheckError::usage("--spawn names no command"))?;
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        // stdout is for the report alone.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            CheckError::new(
                CheckErrorKind::Unreachable,
                format!("`{program}` does not start: {error}"),
            )
            .hint("--spawn takes a command and its arguments, quoted as one word")
        })?;
    Ok((ProcessGroup::of(&child), child))
}
