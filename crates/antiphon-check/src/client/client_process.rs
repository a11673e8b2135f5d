//! The client under test: a process of its own, which never outlives its scenario.
//!
//! It leads a process group, so that what it starts ends with it.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What is kept of the end of stderr.
const TAIL: usize = 2 << 10;
/// How long is waited for a process that was killed.
const REAPED: Duration = Duration::from_secs(2);

/// How the client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientExit {
    Code(i32),
    Signal(i32),
    /// It did not, and was killed.
    Hung,
}

impl fmt::Display for ClientExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with {code}"),
            Self::Signal(signal) => write!(f, "died of signal {signal}"),
            Self::Hung => f.write_str("did not end"),
        }
    }
}

/// A client that runs.
pub(super) struct ClientProcess {
    child: Child,
    group: Option<Pid>,
    /// Gives the end of stderr, once there is no more.
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl ClientProcess {
    /// Starts it; with `is_wire`, its stdin and stdout are for [`ClientProcess::pipes`].
    pub(super) fn start(argv: &[String], scenario: &str, is_wire: bool) -> io::Result<Self> {
        let [program, args @ ..] = argv else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no command"));
        };
        let stdin = if is_wire { Stdio::piped() } else { Stdio::null() };
        let mut child = Command::new(program)
            .args(args)
            .env("ANTIPHON_SCENARIO", scenario)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let stderr = child.stderr.take().map(|stream| tokio::spawn(tail(stream)));
        if !is_wire && let Some(stream) = child.stdout.take() {
            tokio::spawn(tail(stream));
        }
        Ok(Self { child, group, stderr })
    }

    /// Its stdin and stdout, once.
    pub(super) fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?))
    }

    /// Waits for its end, and makes one after this time.
    pub(super) async fn ended(&mut self, limit: Duration) -> ClientExit {
        match timeout(limit, self.child.wait()).await {
            Ok(Ok(status)) => ending(status),
            Ok(Err(_)) | Err(_) => {
                self.kill();
                let _ = timeout(REAPED, self.child.wait()).await;
                ClientExit::Hung
            }
        }
    }

    /// The last thing that it said on stderr. What it started is ended: it may still hold stderr.
    pub(super) async fn last_words(&mut self) -> Option<String> {
        self.kill();
        let tail = timeout(REAPED, self.stderr.take()?).await.ok()?.ok()?;
        said_last(&String::from_utf8_lossy(&tail))
    }

    fn kill(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// What it started and left behind goes too.
impl Drop for ClientProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A write to a pipe that nobody reads ends most programs by a signal, and is no crash.
fn ending(status: ExitStatus) -> ClientExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => ClientExit::Code(code),
        (None, Some(signal)) if signal == Signal::PIPE.as_raw() => ClientExit::Code(128 + signal),
        (None, signal) => ClientExit::Signal(signal.unwrap_or_default()),
    }
}

/// The last line that speaks of an error, or else the last one: runtimes add their version, or a hint.
fn said_last(stderr: &str) -> Option<String> {
    let lines = || stderr.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find(|line| line.to_ascii_lowercase().contains("error"));
    Some(line.or_else(|| lines().next())?.chars().take(200).collect())
}

async fn tail(mut stream: impl AsyncRead + Unpin) -> Vec<u8> {
    let (mut tail, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut piece).await {
        tail.extend_from_slice(&piece[..read]);
        let excess = tail.len().saturating_sub(TAIL);
        tail.drain(..excess);
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_those_about_the_error() {
        assert_eq!(said_last("a\n\nb \n\n").unwrap(), "b");
        assert_eq!(said_last("TypeError: x\n  at y\n\nNode.js v20").unwrap(), "TypeError: x");
        assert_eq!(said_last(" \n"), None);
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_no_crash() {
        assert_eq!(ending(ExitStatus::from_raw(13)), ClientExit::Code(141));
        assert_eq!(ending(ExitStatus::from_raw(11)), ClientExit::Signal(11));
        assert_eq!(ending(ExitStatus::from_raw(3 << 8)), ClientExit::Code(3));
    }
}
