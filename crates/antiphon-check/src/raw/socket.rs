//! The bytes of a connection: a socket or a child process, and how it is made and left.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::target::{Target, TargetLocation};
use super::tls::{RawTlsStream, explain_stream};

/// How long a child has to leave once its stdin is closed.
const GRACE: Duration = Duration::from_secs(2);

/// How much is read at once.
const CHUNK: usize = 16 << 10;

/// The bytes of a connection, both ways.
pub enum RawSocket {
    Tcp(TcpStream),
    Tls(RawTlsStream),
    Unix(UnixStream),
    Child { group: ProcessGroup, stdin: ChildStdin, stdout: ChildStdout, child: Box<Child> },
}

impl RawSocket {
    /// Connects, by TLS where that is spoken.
    pub(crate) async fn connect(target: &Target) -> io::Result<Self> {
        match (Self::open(target).await?, &target.tls) {
            (Self::Tcp(socket), Some((tls, name))) => {
                Ok(Self::Tls(tls.connect(socket, name).await?))
            }
            (socket, _) => Ok(socket),
        }
    }

    /// Connects, and speaks no TLS.
    pub(crate) async fn open(target: &Target) -> io::Result<Self> {
        match &target.location {
            TargetLocation::Tcp(addresses) => {
                let socket = TcpStream::connect(&addresses[..]).await?;
                socket.set_nodelay(true)?;
                Ok(Self::Tcp(socket))
            }
            TargetLocation::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
            TargetLocation::Child(command) => Self::spawn(command, target.is_quiet),
        }
    }

    fn spawn(command: &[String], is_quiet: bool) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::InvalidInput, "there is no command to run");
        let (program, args) = command.split_first().ok_or_else(missing)?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if is_quiet { Stdio::null() } else { Stdio::inherit() })
            // Ctrl-C is for us: we end the run, and then the children.
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

    pub fn poll_read(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(room);
        let read = match self {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, &mut buffer),
            Self::Tls(socket) => {
                // What it has kept of a write goes on here: whatever wakes us, we read.
                if let Poll::Ready(flushed) = Pin::new(&mut *socket).poll_flush(cx) {
                    flushed?;
                }
                Pin::new(socket).poll_read(cx, &mut buffer).map_err(explain_stream)
            }
            Self::Unix(socket) => Pin::new(socket).poll_read(cx, &mut buffer),
            Self::Child { stdout, .. } => Pin::new(stdout).poll_read(cx, &mut buffer),
        };
        ready!(read)?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, pieces),
            Self::Tls(socket) => Pin::new(socket).poll_write_vectored(cx, pieces),
            Self::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, pieces),
            Self::Child { stdin, .. } => Pin::new(stdin).poll_write_vectored(cx, pieces),
        }
    }

    /// Appends what comes next, and says how much it is: 0 at the end. Given up, nothing is lost.
    pub(crate) async fn read(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        let mut room = vec![0; CHUNK];
        let read = poll_fn(|cx| self.poll_read(cx, &mut room)).await?;
        input.extend_from_slice(&room[..read]);
        Ok(read)
    }

    /// Sends all of it, to the last byte.
    pub(crate) async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|cx| self.poll_write(cx, &[IoSlice::new(bytes)])).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        match self {
            Self::Tls(socket) => poll_fn(|cx| Pin::new(&mut *socket).poll_flush(cx)).await,
            _ => Ok(()),
        }
    }

    /// Acknowledges at once what comes next. A server that writes head and body apart waits for that,
    /// 40 ms each time.
    pub(crate) fn acknowledge_now(&self) {
        #[cfg(target_os = "linux")]
        if let Self::Tcp(socket) = self {
            let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
        }
    }

    /// Says what is left to say if it can be said at once, and closes. A child is waited for.
    pub async fn close(mut self, close_message: &[u8]) {
        if !close_message.is_empty() {
            poll_fn(|cx| {
                let _ = self.poll_write(cx, &[IoSlice::new(close_message)]);
                Poll::Ready(())
            })
            .await;
        }
        if let Self::Tls(socket) = &mut self {
            poll_fn(|cx| Poll::Ready(Pin::new(&mut *socket).poll_shutdown(cx).is_ready())).await;
        }
        if let Self::Child { mut group, stdin, stdout, mut child } = self {
            drop((stdin, stdout));
            if timeout(GRACE, child.wait()).await.is_err() {
                group.kill();
                let _ = child.kill().await;
            }
        }
    }
}

/// A child that leads a process group of its own, and what it has started: all end with this.
///
/// The id is kept from the start: a child that was waited for has none, and what it left behind still
/// runs.
#[derive(Debug)]
pub struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    pub(crate) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Ends it, once: later the id may be somebody else's.
    pub(crate) fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
