//! A server that the run starts: before the first case, and again after a crash.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::server_access::ServerAccess;
use crate::error::{CheckError, CheckErrorKind};
use crate::raw::{ProcessGroup, RawSocket};

/// The time for a server to accept connections.
const START: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);
/// The time for a restart. A server that closed connections first and does not set `SO_REUSEADDR` can
/// bind its port again only after a minute.
const AGAIN: Duration = Duration::from_secs(65);
const PAUSE: Duration = Duration::from_millis(200);

/// A server process. Dropping it kills the process and everything that it started.
pub(super) struct SpawnedServer {
    command: Vec<String>,
    group: ProcessGroup,
    child: Child,
}

impl SpawnedServer {
    /// Starts the server, and waits until it accepts connections.
    pub(super) async fn start(
        command: &str,
        server_access: &ServerAccess,
    ) -> Result<Self, CheckError> {
        let command = shell_words::split(command)
            .map_err(|error| CheckError::usage(format!("--spawn {command:?}: {error}")))?;
        if is_taken(server_access).await {
            let endpoint = &server_access.target.address;
            let what = format!("another process already listens on {endpoint}");
            return Err(CheckError::usage(what)
                .hint("stop it, or remove --spawn to check the server that runs there"));
        }
        let (group, child) = spawn(&command)?;
        let mut spawned = Self { command, group, child };
        spawned.wait_until_up(server_access).await?;
        Ok(spawned)
    }

    /// Kills the server, and starts it again.
    pub(super) async fn restart(&mut self, server_access: &ServerAccess) -> Result<(), CheckError> {
        let deadline = Instant::now() + AGAIN;
        loop {
            self.group.kill();
            let _ = self.child.kill().await;
            (self.group, self.child) = spawn(&self.command)?;
            let Err(failure) = self.wait_until_up(server_access).await else { return Ok(()) };
            let has_ended = matches!(self.child.try_wait(), Ok(Some(_)));
            if !has_ended || Instant::now() >= deadline.min(server_access.timing.deadline) {
                return Err(failure);
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns how the process ended, if it did.
    pub(super) async fn ended(&mut self) -> Option<String> {
        let status = timeout(Duration::from_millis(100), self.child.wait()).await.ok()?.ok()?;
        Some(format!("the server process ended: {status}"))
    }

    async fn wait_until_up(&mut self, server_access: &ServerAccess) -> Result<(), CheckError> {
        let deadline = server_access.timing.deadline.min(Instant::now() + START);
        loop {
            let connected = server_access.connect(true).await;
            let command = self.command.join(" ");
            // If another process accepted the connection, it is not the server under test.
            if let Ok(Some(status)) = self.child.try_wait() {
                let what = format!("`{command}` ended before it accepted connections: {status}");
                return Err(CheckError::new(CheckErrorKind::Unreachable, what)
                    .hint("run the command yourself to see its output"));
            }
            let Err(fault) = connected else { return Ok(()) };
            if Instant::now() > deadline {
                let endpoint = &server_access.target.address;
                let what = format!("`{command}` runs, but {endpoint} is unreachable: {fault}");
                return Err(CheckError::new(CheckErrorKind::Unreachable, what)
                    .hint("check that it listens on this endpoint"));
            }
            sleep(STEP).await;
        }
    }
}

/// Reports whether a process already listens there, with any protocol.
async fn is_taken(server_access: &ServerAccess) -> bool {
    matches!(
        timeout(server_access.timing.reply_timeout(), RawSocket::open(&server_access.target)).await,
        Ok(Ok(_))
    )
}

fn spawn(words: &[String]) -> Result<(ProcessGroup, Child), CheckError> {
    let (program, args) =
        words.split_first().ok_or_else(|| CheckError::usage("--spawn has no command"))?;
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        // stdout is reserved for the report.
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
            .hint("quote the command and its arguments together: --spawn 'node server.js'")
        })?;
    Ok((ProcessGroup::of(&child), child))
}
