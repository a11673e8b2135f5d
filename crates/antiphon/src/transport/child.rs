//! A child process, connected through its stdin and stdout. It inherits our stderr.
//!
//! A child is stopped in steps: its stdin is closed; after a grace period it gets SIGTERM; after another
//! grace period, SIGKILL. It is always reaped.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use antiphon_core::Limits;
use antiphon_core::framing::Framing;
use tokio::io::{Join, join};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::stream::FramedStream;
use crate::connection::Connection;
use crate::peer::{AtEof, Wire};

/// The grace period after each step of stopping a child.
const GRACE: Duration = Duration::from_secs(2);

/// Frames over a child's stdin and stdout.
pub(crate) type ChildTransport = FramedStream<Join<ChildStdout, ChildStdin>>;

/// Starts a command with piped stdin and stdout.
pub(crate) fn spawn(
    command: &[String],
    framing: Framing,
    limits: &Limits,
) -> io::Result<(Child, Wire<ChildTransport>)> {
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
    let (program, args) = command.split_first().ok_or_else(missing)?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the child has no stdin and stdout"));
    };
    let wire = FramedStream::new(join(stdout, stdin), Some(framing), limits.longest_frame())
        .into_wire(Connection::new("exec"), AtEof::Drain(Some(GRACE)));
    Ok((child, wire))
}

/// Waits until a child whose stdin is closed exits, and terminates it if it does not.
pub(crate) async fn reap(mut child: Child) {
    if timeout(GRACE, child.wait()).await.is_ok() {
        return;
    }
    terminate(&child);
    if timeout(GRACE, child.wait()).await.is_ok() {
        return;
    }
    tracing::warn!(pid = child.id(), "child did not exit after SIGTERM; killing it");
    if let Err(error) = child.kill().await {
        tracing::warn!(%error, "cannot kill the child");
    }
}

#[cfg(unix)]
fn terminate(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, Signal::TERM)
    {
        tracing::debug!(%error, "cannot send SIGTERM to the child");
    }
}

/// Systems without SIGTERM skip this step: the next step kills the child.
#[cfg(not(unix))]
fn terminate(_: &Child) {}
