//! A child process, spoken to by its stdin and stdout. Its stderr stays ours.
//!
//! A child is stopped as one asks a person to leave: its stdin is closed; after a grace time it gets
//! SIGTERM; after another, SIGKILL. It is always reaped.

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

/// How long a child has to leave after each request to.
const GRACE: Duration = Duration::from_secs(2);

/// Frames over a child's stdin and stdout.
pub(crate) type ChildTransport = FramedStream<Join<ChildStdout, ChildStdin>>;

/// Starts a command and takes its stdin and stdout.
pub(crate) fn spawn(
    command: &[String],
    framing: Framing,
    limits: &Limits,
) -> io::Result<(Child, Wire<ChildTransport>)> {
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "there is no command to run");
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

/// Waits for a child whose stdin is closed to leave, and makes it.
pub(crate) async fn reap(mut child: Child) {
    if timeout(GRACE, child.wait()).await.is_ok() {
        return;
    }
    terminate(&child);
    if timeout(GRACE, child.wait()).await.is_ok() {
        return;
    }
    tracing::warn!(pid = child.id(), "the child does not leave; killing it");
    if let Err(error) = child.kill().await {
        tracing::warn!(%error, "the child could not be killed");
    }
}

#[cfg(unix)]
fn terminate(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, Signal::TERM)
    {
        tracing::debug!(%error, "the child could not be sent SIGTERM");
    }
}

/// There is no gentler way than to kill it, which comes next.
#[cfg(not(unix))]
fn terminate(_: &Child) {}
