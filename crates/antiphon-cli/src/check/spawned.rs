//! The server as a process of ours: started before the first case, and again when it dies.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::dial::Dialer;
use crate::exit::{Exit, Failure};
use crate::raw::socket::kill_group;

/// How long a server may take until it can be connected to.
const START: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);

/// A server that was started here; it is killed when this is dropped.
pub(super) struct Spawned {
    command: Vec<String>,
    child: Child,
}

impl Spawned {
    /// Starts it, and waits until it listens.
    pub(super) async fn start(command: &str, dialer: &Dialer) -> Result<Self, Failure> {
        let words = shell_words::split(command)
            .map_err(|error| Failure::usage(format!("--spawn {command:?}: {error}")))?;
        let child = spawn(&words)?;
        let mut spawned = Self { command: words, child };
        spawned.wait_until_up(dialer).await?;
        Ok(spawned)
    }

    /// Starts it anew.
    pub(super) async fn restart(&mut self, dialer: &Dialer) -> Result<(), Failure> {
        kill_group(&self.child);
        let _ = self.child.kill().await;
        self.child = spawn(&self.command)?;
        self.wait_until_up(dialer).await
    }

    /// How it ended, if it did.
    pub(super) async fn ended(&mut self) -> Option<String> {
        let status = timeout(Duration::from_millis(100), self.child.wait()).await.ok()?.ok()?;
        Some(format!("the server's process ended: {status}"))
    }

    async fn wait_until_up(&mut self, dialer: &Dialer) -> Result<(), Failure> {
        let deadline = dialer.deadline.min(Instant::now() + START);
        loop {
            let fault = match dialer.connect(true).await {
                Ok(_) => return Ok(()),
                Err(fault) => fault,
            };
            let command = self.command.join(" ");
            if let Ok(Some(status)) = self.child.try_wait() {
                let what = format!("`{command}` ended before it listened: {status}");
                return Err(
                    Failure::new(Exit::Transport, what).hint("run it by hand to see what it says")
                );
            }
            if Instant::now() > deadline {
                let endpoint = &dialer.target.endpoint;
                let what = format!("`{command}` runs, and {endpoint} cannot be reached: {fault}");
                return Err(Failure::new(Exit::Transport, what)
                    .hint("check that it listens where the endpoint says"));
            }
            sleep(STEP).await;
        }
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        kill_group(&self.child);
    }
}

fn spawn(words: &[String]) -> Result<Child, Failure> {
    let (program, args) =
        words.split_first().ok_or_else(|| Failure::usage("--spawn names no command"))?;
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        // stdout is for the report alone.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            Failure::new(Exit::Transport, format!("`{program}` does not start: {error}"))
                .hint("--spawn takes a command and its arguments, quoted as one word")
        })
}
