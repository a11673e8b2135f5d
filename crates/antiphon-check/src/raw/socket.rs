//! The byte stream of a connection: a socket, or the pipes of a child process.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::resolved_target::{ResolvedTarget, TargetLocation};
use super::tls::{RawTlsStream, explain_stream};

/// The time for a child process to exit after its stdin is closed.
const GRACE: Duration = Duration::from_secs(2);

/// The size of one read.
const CHUNK: usize = 16 << 10;

/// The byte stream of a connection.
#[derive(Debug)]
pub struct RawSocket(SocketKind);

#[derive(Debug)]
enum SocketKind {
    Tcp(TcpStream),
    Tls(RawTlsStream),
    Unix(UnixStream),
    Child { group: ProcessGroup, stdin: ChildStdin, stdout: ChildStdout, child: Box<Child> },
}

impl RawSocket {
    /// Connects; with TLS if the target requires it.
    pub(crate) async fn connect(target: &ResolvedTarget) -> io::Result<Self> {
        match (Self::open(target).await?.0, &target.tls) {
            (SocketKind::Tcp(socket), Some((tls, name))) => {
                Ok(Self(SocketKind::Tls(tls.connect(socket, name).await?)))
            }
            (socket, _) => Ok(Self(socket)),
        }
    }

    /// Connects, without a TLS handshake.
    pub(crate) async fn open(target: &ResolvedTarget) -> io::Result<Self> {
        Ok(Self(match &target.location {
            TargetLocation::Tcp(addresses) => {
                let socket = TcpStream::connect(&addresses[..]).await?;
                socket.set_nodelay(true)?;
                SocketKind::Tcp(socket)
            }
            TargetLocation::Unix(path) => SocketKind::Unix(UnixStream::connect(path).await?),
            TargetLocation::Child(command) => SocketKind::spawn(command, target.is_quiet)?,
        }))
    }

    /// Returns the exit status of the child process, if this is one and it exits within the time.
    pub(crate) async fn exit_status(&mut self, limit: Duration) -> Option<ExitStatus> {
        let SocketKind::Child { child, .. } = &mut self.0 else { return None };
        timeout(limit, child.wait()).await.ok()?.ok()
    }

    /// Reads into `room`. Returns the number of bytes, 0 at the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(room);
        let read = match &mut self.0 {
            SocketKind::Tcp(socket) => Pin::new(socket).poll_read(cx, &mut buffer),
            SocketKind::Tls(socket) => {
                // TLS buffers a part of a write. Every wake-up leads here, so the flush goes on here.
                if let Poll::Ready(flushed) = Pin::new(&mut *socket).poll_flush(cx) {
                    flushed?;
                }
                Pin::new(socket).poll_read(cx, &mut buffer).map_err(explain_stream)
            }
            SocketKind::Unix(socket) => Pin::new(socket).poll_read(cx, &mut buffer),
            SocketKind::Child { stdout, .. } => Pin::new(stdout).poll_read(cx, &mut buffer),
        };
        ready!(read)?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Writes the pieces. Returns the number of bytes that were taken.
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            SocketKind::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, pieces),
            SocketKind::Tls(socket) => Pin::new(socket).poll_write_vectored(cx, pieces),
            SocketKind::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, pieces),
            SocketKind::Child { stdin, .. } => Pin::new(stdin).poll_write_vectored(cx, pieces),
        }
    }

    /// Appends the next bytes. Returns their number, 0 at the end of the stream. Cancel-safe.
    pub(crate) async fn read(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        let mut room = vec![0; CHUNK];
        let read = poll_fn(|cx| self.poll_read(cx, &mut room)).await?;
        input.extend_from_slice(&room[..read]);
        Ok(read)
    }

    /// Writes all bytes, and flushes TLS.
    pub(crate) async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|cx| self.poll_write(cx, &[IoSlice::new(bytes)])).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        match &mut self.0 {
            SocketKind::Tls(socket) => poll_fn(|cx| Pin::new(&mut *socket).poll_flush(cx)).await,
            _ => Ok(()),
        }
    }

    /// Acknowledges the next segment at once. Otherwise a server that writes head and body in two
    /// segments waits 40 ms for the acknowledgement of the first.
    pub(crate) fn acknowledge_now(&self) {
        #[cfg(target_os = "linux")]
        if let SocketKind::Tcp(socket) = &self.0 {
            let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
        }
    }

    /// Writes the close message if that is possible without waiting, and closes. Waits for a child
    /// process to exit.
    pub async fn close(mut self, close_message: &[u8]) {
        if !close_message.is_empty() {
            poll_fn(|cx| {
                let _ = self.poll_write(cx, &[IoSlice::new(close_message)]);
                Poll::Ready(())
            })
            .await;
        }
        if let SocketKind::Tls(socket) = &mut self.0 {
            poll_fn(|cx| Poll::Ready(Pin::new(&mut *socket).poll_shutdown(cx).is_ready())).await;
        }
        if let SocketKind::Child { mut group, stdin, stdout, mut child } = self.0 {
            drop((stdin, stdout));
            if timeout(GRACE, child.wait()).await.is_err() {
                group.kill();
                let _ = child.kill().await;
            }
        }
    }
}

/// The process group of a child. Dropping it kills the child and every process that it started.
///
/// The id is stored at the start. A child that has exited has no id, but its own children may still run.
#[derive(Debug)]
pub(crate) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    pub(crate) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Kills the group, once: later the system may give the id to another process.
    pub(crate) fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl SocketKind {
    fn spawn(command: &[String], is_quiet: bool) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::InvalidInput, "there is no command to run");
        let (program, args) = command.split_first().ok_or_else(missing)?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if is_quiet { Stdio::null() } else { Stdio::inherit() })
            // Ctrl-C must reach this process alone, which ends the run and then the children.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = ProcessGroup::of(&child);
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                Ok(Self::Child { group, stdin, stdout, child: Box::new(child) })
            }
            _ => Err(io::Error::other("the child has no stdin and stdout")),
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
