//! Bound listeners, and the protocol of each.
//!
//! A listener does not serve connections: `accept.rs` accepts them, `endpoint_service.rs` serves them.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use antiphon_core::framing::Framing;
use futures_core::Stream;
use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(all(unix, any(feature = "tcp", feature = "unix")))]
use std::os::fd::AsFd as _;

use super::wire_service::WireService;
use crate::BoxFuture;
#[cfg(any(feature = "memory", all(feature = "unix", unix)))]
use crate::transport;

/// A listener that accepts byte streams.
///
/// Implement it to serve sockets that this library does not provide, such as those of a virtual machine
/// or of a simulated network. See [`Server::from_listener`](crate::Server::from_listener).
///
/// ```
/// use antiphon::transport::stream::FramedStream;
/// use antiphon::{Accept, Client, Context, Framing, Limits, Router, Server};
/// use std::io;
/// use std::net::SocketAddr;
/// use std::task::{Context as Poller, Poll, ready};
/// use tokio::io::{DuplexStream, duplex};
/// use tokio::sync::mpsc;
///
/// /// Accepts pipes within this process.
/// struct Pipes(mpsc::Receiver<DuplexStream>);
///
/// impl Accept for Pipes {
///     type Stream = DuplexStream;
///
///     fn poll_accept(
///         &mut self,
///         cx: &mut Poller<'_>,
///     ) -> Poll<io::Result<(DuplexStream, Option<SocketAddr>)>> {
///         match ready!(self.0.poll_recv(cx)) {
///             Some(stream) => Poll::Ready(Ok((stream, None))),
///             None => Poll::Pending,      // No further connection can arrive.
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (dial, pipes) = mpsc::channel(16);
/// let server = Server::from_listener(Pipes(pipes), "tcp://pipes:0")?;
/// # let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
/// tokio::spawn(server.serve(router));
///
/// let (ours, theirs) = duplex(64 * 1024);
/// dial.send(theirs).await?;
/// let max_frame = Limits::default().longest_frame();
/// let client = Client::over(FramedStream::new(ours, Some(Framing::Line), max_frame));
/// assert_eq!(client.call::<String>("ping", ()).await?, "pong");
/// # Ok(()) }
/// ```
pub trait Accept: Send + 'static {
    /// An accepted connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Accepts the next connection, with the address of its client if it has one. Must not block.
    ///
    /// After an error, the server logs it, waits 50 ms and polls again. A listener never ends: return
    /// `Poll::Pending` if no further connection can arrive.
    fn poll_accept(
        &mut self,
        cx: &mut Poller<'_>,
    ) -> Poll<io::Result<(Self::Stream, Option<SocketAddr>)>>;

    /// Returns the address that the listener is bound to, if it has one. It replaces the address of the
    /// endpoint. On a loopback address, HTTP rejects requests whose `Host` header names another host.
    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }

    /// Returns the listener in the form that the server keeps. Only the listeners of this library override
    /// it.
    #[doc(hidden)]
    fn into_source(self) -> Source
    where
        Self: Sized,
    {
        Source(SourceKind::Foreign(Box::new(Boxed(self))))
    }
}

/// A listener of byte streams, of any type.
#[doc(hidden)]
pub struct Source(pub(super) SourceKind);

pub(super) enum SourceKind {
    #[cfg(feature = "tcp")]
    Tcp(tokio::net::TcpListener),
    #[cfg(all(feature = "unix", unix))]
    Unix(transport::unix::UnixSocket),
    Foreign(Box<dyn AcceptBoxed>),
}

impl SourceKind {
    /// Whether TLS can run on the streams. The handshake needs the socket itself, to reply in plain text
    /// to a client that does not speak TLS.
    pub(super) fn carries_tls(&self) -> bool {
        #[cfg(feature = "tcp")]
        return matches!(self, Self::Tcp(_));
        #[cfg(not(feature = "tcp"))]
        false
    }
}

#[cfg(feature = "tcp")]
impl Accept for tokio::net::TcpListener {
    type Stream = tokio::net::TcpStream;

    fn poll_accept(
        &mut self,
        cx: &mut Poller<'_>,
    ) -> Poll<io::Result<(Self::Stream, Option<SocketAddr>)>> {
        let accepted = tokio::net::TcpListener::poll_accept(self, cx);
        accepted.map_ok(|(stream, remote)| (stream, Some(remote)))
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        tokio::net::TcpListener::local_addr(self).ok()
    }

    fn into_source(self) -> Source {
        Source(SourceKind::Tcp(self))
    }
}

#[cfg(all(feature = "unix", unix))]
impl Accept for tokio::net::UnixListener {
    type Stream = tokio::net::UnixStream;

    fn poll_accept(
        &mut self,
        cx: &mut Poller<'_>,
    ) -> Poll<io::Result<(Self::Stream, Option<SocketAddr>)>> {
        tokio::net::UnixListener::poll_accept(self, cx).map_ok(|(stream, _)| (stream, None))
    }

    /// The socket file remains when the server ends, because the server has not created it.
    fn into_source(self) -> Source {
        Source(SourceKind::Unix(transport::unix::UnixSocket::from(self)))
    }
}

/// A byte stream of a listener that the application implements.
pub(super) type BoxedStream = Box<dyn ByteStream>;

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// [`Accept`] with its stream boxed.
pub(super) trait AcceptBoxed: Send {
    fn poll_accept(
        &mut self,
        cx: &mut Poller<'_>,
    ) -> Poll<io::Result<(BoxedStream, Option<SocketAddr>)>>;

    #[cfg(feature = "http")]
    fn local_addr(&self) -> Option<SocketAddr>;
}

struct Boxed<A>(A);

impl<A: Accept> AcceptBoxed for Boxed<A> {
    fn poll_accept(
        &mut self,
        cx: &mut Poller<'_>,
    ) -> Poll<io::Result<(BoxedStream, Option<SocketAddr>)>> {
        let accepted = self.0.poll_accept(cx);
        accepted.map_ok(|(stream, remote)| (Box::new(stream) as BoxedStream, remote))
    }

    #[cfg(feature = "http")]
    fn local_addr(&self) -> Option<SocketAddr> {
        self.0.local_addr()
    }
}

/// The protocol on a listener of byte streams.
#[derive(Clone, Debug)]
pub(super) enum Protocol {
    /// Framed messages. Without a framing, it is detected from the first bytes of the client.
    #[cfg_attr(
        not(any(feature = "tcp", feature = "unix")),
        allow(dead_code, reason = "without sockets, no endpoint has a byte stream")
    )]
    Framed(Option<Framing>),
    /// HTTP under this path, and WebSockets if the feature is enabled.
    #[cfg(feature = "http")]
    Http { path: String, websocket_only: bool },
}

/// The listener of one endpoint.
pub(super) enum Listener {
    Streams(SourceKind, Protocol),
    #[cfg(feature = "memory")]
    Memory(transport::memory::MemoryListener),
    /// Transports that the application accepts.
    Transports(Pin<Box<dyn Stream<Item = Connected> + Send>>),
    /// An endpoint that has exactly one connection, such as `stdio:`.
    Single(Connected),
}

/// An open connection: a closure that serves it, once the service is known. Fails if the connection did.
pub(super) type Connected =
    Box<dyn FnOnce(&WireService) -> BoxFuture<'static, io::Result<()>> + Send>;

impl Listener {
    /// A second listener on the same socket, for another thread; `None` if it cannot be shared.
    #[cfg(all(unix, any(feature = "tcp", feature = "unix")))]
    pub(super) fn share(&self) -> Option<io::Result<SharedListener>> {
        let Self::Streams(source, protocol) = self else { return None };
        let copy = |socket: std::os::fd::BorrowedFd<'_>| socket.try_clone_to_owned();
        match source {
            #[cfg(feature = "tcp")]
            SourceKind::Tcp(socket) => {
                Some(copy(socket.as_fd()).map(|fd| SharedListener::Tcp(fd, protocol.clone())))
            }
            #[cfg(feature = "unix")]
            SourceKind::Unix(listener) => {
                let fd = copy(listener.socket.as_fd());
                Some(fd.map(|fd| SharedListener::Unix(fd, protocol.clone())))
            }
            SourceKind::Foreign(_) => None,
        }
    }

    #[cfg(not(all(unix, any(feature = "tcp", feature = "unix"))))]
    pub(super) fn share(&self) -> Option<io::Result<SharedListener>> {
        None
    }
}

/// A socket that is moved to another thread, to be registered with the runtime there.
#[cfg(unix)]
pub(super) enum SharedListener {
    #[cfg(feature = "tcp")]
    Tcp(std::os::fd::OwnedFd, Protocol),
    #[cfg(feature = "unix")]
    Unix(std::os::fd::OwnedFd, Protocol),
}

#[cfg(not(unix))]
pub(super) enum SharedListener {}

impl SharedListener {
    /// Registers the socket with the runtime of this thread.
    pub(super) fn open(self) -> io::Result<Listener> {
        match self {
            #[cfg(all(unix, feature = "tcp"))]
            Self::Tcp(fd, protocol) => {
                let socket = tokio::net::TcpListener::from_std(fd.into())?;
                Ok(Listener::Streams(SourceKind::Tcp(socket), protocol))
            }
            #[cfg(all(unix, feature = "unix"))]
            Self::Unix(fd, protocol) => {
                let socket = tokio::net::UnixListener::from_std(fd.into())?;
                let listener = transport::unix::UnixSocket::from(socket);
                Ok(Listener::Streams(SourceKind::Unix(listener), protocol))
            }
            #[allow(unreachable_patterns, reason = "depends on the features")]
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}
