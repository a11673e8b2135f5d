//! The process of the client under test. It never outlives its scenario.
//!
//! It leads a process group, so that its own children end with it.

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

/// The number of bytes that are kept of the end of stderr.
const TAIL: usize = 2 << 10;
/// The time for a killed process to end.
const REAPED: Duration = Duration::from_secs(2);

/// The end of the client process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientExit {
    Code(i32),
    Signal(i32),
    /// It did not end, and was killed.
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

/// A running client.
pub(super) struct ClientProcess {
    child: Child,
    group: Option<Pid>,
    /// Returns the end of stderr, once it is closed.
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl ClientProcess {
    /// Starts the client. With `is_wire`, its stdin and stdout are for [`ClientProcess::pipes`].
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

    /// Returns its stdin and stdout, once.
    pub(super) fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?))
    }

    /// Waits for its end, and kills it after this time.
    pub(super) async fn wait(&mut self, limit: Duration) -> ClientExit {
        match timeout(limit, self.child.wait()).await {
            Ok(Ok(status)) => ending(status),
            Ok(Err(_)) | Err(_) => {
                self.kill();
                let _ = timeout(REAPED, self.child.wait()).await;
                ClientExit::Hung
            }
        }
    }

    /// Returns the last error line of stderr. Kills its children first, which may still hold stderr.
    pub(super) async fn last_error(&mut self) -> Option<String> {
        self.kill();
        let tail = timeout(REAPED, self.stderr.take()?).await.ok()?.ok()?;
        last_error_line(&String::from_utf8_lossy(&tail))
    }

    fn kill(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Kills the children that it left behind, too.
impl Drop for ClientProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Converts an exit status. SIGPIPE, from a write to a closed pipe, is not a crash.
fn ending(status: ExitStatus) -> ClientExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => ClientExit::Code(code),
        (None, Some(signal)) if signal == Signal::PIPE.as_raw() => ClientExit::Code(128 + signal),
        (None, signal) => ClientExit::Signal(signal.unwrap_or_default()),
    }
}

/// Returns the last line that contains "error", or else the last line: runtimes append their version or
/// a hint.
fn last_error_line(stderr: &str) -> Option<String> {
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
    fn the_last_error_line_is_found() {
        assert_eq!(last_error_line("a\n\nb \n\n").unwrap(), "b");
        assert_eq!(last_error_line("TypeError: x\n  at y\n\nNode.js v20").unwrap(), "TypeError: x");
        assert_eq!(last_error_line(" \n"), None);
    }

    #[test]
    fn a_broken_pipe_is_not_a_crash() {
        assert_eq!(ending(ExitStatus::from_raw(13)), ClientExit::Code(141));
        assert_eq!(ending(ExitStatus::from_raw(11)), ClientExit::Signal(11));
        assert_eq!(ending(ExitStatus::from_raw(3 << 8)), ClientExit::Code(3));
    }
}
