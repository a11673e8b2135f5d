//! A child process, connected through its stdin and stdout. It inherits our stderr.
//!
//! A child is stopped in steps: its stdin is closed; after a grace period it gets SIGTERM; after another
//! grace period, SIGKILL. It is always reaped.

use std::io;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Poller, Poll, ready};
use std::time::Duration;

use antiphon_core::Limits;
use antiphon_core::framing::Framing;
use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use tokio::io::{Join, join};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Sleep, sleep, timeout};

use super::TransportError;
use super::stream::FramedStream;
use crate::connection::Connection;
use crate::peer::{AtEof, Wire};

/// The grace period after each step of stopping a child.
const GRACE: Duration = Duration::from_secs(2);

/// The time in which a child that has closed its stdout may exit, so that its exit status is the reason of
/// the end.
const EXIT_TIME: Duration = Duration::from_millis(200);

/// Frames over a child's stdin and stdout.
pub(crate) struct ChildTransport {
    stream: FramedStream<Join<ChildStdout, ChildStdin>>,
    child: SharedChild,
    exit: Exit,
    /// What the stream has returned after its end or its error, until the exit status is known.
    held: Option<Option<Result<Bytes, TransportError>>>,
}

/// The process. The connection asks for its exit status, and [`reap`] stops it afterwards.
pub(crate) type SharedChild = Arc<Mutex<Child>>;

/// What is known about the exit of the child.
enum Exit {
    /// Nothing was asked yet.
    Unasked,
    /// The child has this time to exit.
    Awaited(Pin<Box<Sleep>>),
    /// The failure with which the child has exited, or `None` if it runs or has succeeded.
    Known(Option<ProcessExited>),
}

/// The process exited with a status of failure, or a signal has killed it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the process {}", shown(.0))]
struct ProcessExited(ExitStatus);

/// The exit status, for an error message.
fn shown(status: &ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exited with status {code}"),
        // Such as "signal: 9 (SIGKILL)".
        None => format!("was killed by {status}"),
    }
}

impl ChildTransport {
    /// Ready when the child has exited, or has had its time to.
    fn poll_exit(&mut self, poller: &mut Poller<'_>) -> Poll<Option<ProcessExited>> {
        if let Exit::Known(failure) = self.exit {
            return Poll::Ready(failure);
        }
        let waited = {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            // The waker is kept by the child, not by this future.
            pin!(child.wait()).poll(poller)
        };
        let failure = match waited {
            Poll::Ready(status) => {
                status.ok().filter(|status| !status.success()).map(ProcessExited)
            }
            Poll::Pending => {
                if let Exit::Unasked = self.exit {
                    self.exit = Exit::Awaited(Box::pin(sleep(EXIT_TIME)));
                }
                if let Exit::Awaited(time) = &mut self.exit {
                    ready!(time.as_mut().poll(poller));
                }
                None
            }
        };
        self.exit = Exit::Known(failure);
        Poll::Ready(failure)
    }

    /// Replaces an error of the pipe to the child, if the reason is that the child has exited.
    fn poll_failed(
        &mut self,
        outcome: Result<(), TransportError>,
        poller: &mut Poller<'_>,
    ) -> Poll<Result<(), TransportError>> {
        match outcome {
            Ok(()) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(match ready!(self.poll_exit(poller)) {
                Some(exited) => exited.into(),
                None => error,
            })),
        }
    }
}

impl From<ProcessExited> for TransportError {
    fn from(exited: ProcessExited) -> Self {
        Self::Ended(exited.into())
    }
}

/// The end of a child that has failed is an error with its exit status. Everything else is as the stream
/// returns it.
impl Stream for ChildTransport {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.held.is_none() {
            let next = ready!(Pin::new(&mut this.stream).poll_next(poller));
            let is_failed = matches!(next, Some(Err(TransportError::Io(_))));
            if !this.stream.has_ended() && !is_failed {
                return Poll::Ready(next);
            }
            this.held = Some(next);
        }
        // Also before the last frames: an end that follows them at once tells that they are incomplete.
        let exited = ready!(this.poll_exit(poller));
        let held = this.held.take().flatten();
        Poll::Ready(match (held, exited) {
            (None | Some(Err(TransportError::Io(_))), Some(exited)) => Some(Err(exited.into())),
            (held, _) => held,
        })
    }
}

impl Sink<Bytes> for ChildTransport {
    type Error = TransportError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let ready = ready!(Pin::new(&mut self.stream).poll_ready(poller));
        self.poll_failed(ready, poller)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> Result<(), TransportError> {
        Pin::new(&mut self.stream).start_send(message)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(poller));
        self.poll_failed(flushed, poller)
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Result<(), TransportError>> {
        Pin::new(&mut self.stream).poll_close(poller)
    }
}

/// Starts a command with piped stdin and stdout.
pub(crate) fn spawn(
    command: &[String],
    framing: Framing,
    limits: &Limits,
) -> io::Result<(SharedChild, Wire<ChildTransport>)> {
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
    let child = Arc::new(Mutex::new(child));
    let Wire { transport: stream, facts, meter, at_eof, lines } =
        FramedStream::new(join(stdout, stdin), Some(framing), limits.longest_frame())
            .into_wire(Connection::new("exec"), AtEof::Drain(Some(GRACE)));
    let transport =
        ChildTransport { stream, child: child.clone(), exit: Exit::Unasked, held: None };
    Ok((child, Wire { transport, facts, meter, at_eof, lines }))
}

/// Waits until a child whose stdin is closed exits, and terminates it if it does not. Its connection has
/// ended.
pub(crate) async fn reap(child: SharedChild) {
    let Some(child) = Arc::into_inner(child) else { return };
    let mut child = child.into_inner().unwrap_or_else(PoisonError::into_inner);
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
