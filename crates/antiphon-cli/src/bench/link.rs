//! One connection: a socket or a child process, and how it is made and left.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use antiphon::transport::tls::TlsStream;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::codec::{Codec, Http, KEY, MAX_HEAD, PROOF, Stream, Ws, headers_of};
use super::target::{Place, Speech, Target};

/// How long a child has to leave once its stdin is closed.
const GRACE: Duration = Duration::from_secs(2);

/// A connection that is ready for calls.
pub(super) struct Link {
    pub(super) socket: Socket,
    pub(super) codec: Codec,
    /// What came with the handshake and is no part of it.
    pub(super) early: Vec<u8>,
}

/// The bytes of a connection, both ways.
pub(super) enum Socket {
    Tcp(TcpStream),
    Tls(TlsStream),
    Unix(UnixStream),
    Child { stdin: ChildStdin, stdout: ChildStdout, child: Box<Child> },
}

/// Connects, within the time if there is one.
pub(super) async fn connect(target: &Target, limit: Option<Duration>) -> io::Result<Link> {
    let link = link(target);
    match limit {
        None => link.await,
        Some(limit) => timeout(limit, link).await.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "it takes longer than --timeout"))
        }),
    }
}

async fn link(target: &Target) -> io::Result<Link> {
    let mut socket = match (Socket::open(&target.place).await?, &target.tls) {
        (Socket::Tcp(socket), Some((tls, name))) => Socket::Tls(tls.connect(socket, name).await?),
        (socket, _) => socket,
    };
    let mut early = Vec::new();
    let codec = match &target.speech {
        Speech::Http { path, host } => Codec::Http(Http::new(path, host, &target.headers)),
        Speech::Stream(framing) => Codec::Stream(Stream::new(*framing)),
        Speech::Ws { path, host } => {
            early = match &mut socket {
                Socket::Tcp(socket) => upgrade(socket, path, host, target).await?,
                Socket::Tls(socket) => upgrade(socket, path, host, target).await?,
                _ => return Err(io::Error::other("a WebSocket needs TCP")),
            };
            Codec::Ws(Ws::new())
        }
    };
    Ok(Link { socket, codec, early })
}

/// The opening handshake (RFC 6455, section 4.1); gives what came behind it.
async fn upgrade(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    path: &str,
    host: &str,
    target: &Target,
) -> io::Result<Vec<u8>> {
    let mut request = format!("GET {path} HTTP/1.1\r\n").into_bytes();
    let own = [
        ("host", host),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", KEY),
    ];
    headers_of(&own, &target.headers, &mut request);
    request.extend_from_slice(b"\r\n");
    socket.write_all(&request).await?;
    socket.flush().await?;
    let mut answer = Vec::new();
    loop {
        if socket.read_buf(&mut answer).await? == 0 {
            return Err(io::Error::other("the server closed the connection in the handshake"));
        }
        if let Some(length) = upgraded(&answer)? {
            answer.drain(..length);
            return Ok(answer);
        }
    }
}

/// Where the answer to the handshake ends, once it is there and right.
fn upgraded(answer: &[u8]) -> io::Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(answer).map_err(io::Error::other)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial if answer.len() <= MAX_HEAD => return Ok(None),
        httparse::Status::Partial => return Err(io::Error::other("its HTTP head is too long")),
    };
    let status = response.code.unwrap_or_default();
    if status != 101 {
        return Err(io::Error::other(format!("the upgrade to a WebSocket gives status {status}")));
    }
    let named = |name| response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
    match named("sec-websocket-accept") {
        Some(proof) if proof.value == PROOF.as_bytes() => Ok(Some(length)),
        _ => Err(io::Error::other("the upgrade to a WebSocket is not proven")),
    }
}

impl Socket {
    async fn open(place: &Place) -> io::Result<Self> {
        match place {
            Place::Tcp(addresses) => {
                let socket = TcpStream::connect(&addresses[..]).await?;
                socket.set_nodelay(true)?;
                Ok(Self::Tcp(socket))
            }
            Place::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
            Place::Child(command) => Self::spawn(command),
        }
    }

    fn spawn(command: &[String]) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::InvalidInput, "there is no command to run");
        let (program, args) = command.split_first().ok_or_else(missing)?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for us: we end the run, and then the children.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                Ok(Self::Child { stdin, stdout, child: Box::new(child) })
            }
            _ => Err(io::Error::other("the child has no stdin and stdout")),
        }
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(room);
        let read = match self {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, &mut buffer),
            Self::Tls(socket) => {
                // What it has kept of a write goes on here: whatever wakes us, we read.
                if let Poll::Ready(flushed) = Pin::new(&mut *socket).poll_flush(cx) {
                    flushed?;
                }
                Pin::new(socket).poll_read(cx, &mut buffer)
            }
            Self::Unix(socket) => Pin::new(socket).poll_read(cx, &mut buffer),
            Self::Child { stdout, .. } => Pin::new(stdout).poll_read(cx, &mut buffer),
        };
        ready!(read)?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    pub(super) fn poll_write(
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

    /// Says what is left to say if it can be said at once, and closes. A child is waited for.
    pub(super) async fn leave(mut self, goodbye: &[u8]) {
        if !goodbye.is_empty() {
            std::future::poll_fn(|cx| {
                let _ = self.poll_write(cx, &[IoSlice::new(goodbye)]);
                Poll::Ready(())
            })
            .await;
        }
        if let Self::Tls(socket) = &mut self {
            std::future::poll_fn(|cx| {
                Poll::Ready(Pin::new(&mut *socket).poll_shutdown(cx).is_ready())
            })
            .await;
        }
        if let Self::Child { stdin, stdout, mut child } = self {
            drop((stdin, stdout));
            if timeout(GRACE, child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
        }
    }
}
