//! Raw TCP.

use std::io;

use antiphon_core::Limits;
use antiphon_core::framing::Framing;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::stream::FramedStream;
#[cfg(feature = "tls")]
use super::tls::TlsStream;
use crate::connection::Connection;
use crate::peer::{AtEof, Wire};

/// Frames over a TCP connection.
pub(crate) type TcpTransport = FramedStream<TcpStream>;

/// Opens a TCP connection.
pub(crate) async fn connect(authority: &str, limits: &Limits) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(authority).await?;
    prepare(&stream, limits);
    Ok(stream)
}

/// Disables Nagle's algorithm and enables TCP keep-alive. A socket that supports neither still works.
pub(crate) fn prepare(stream: &TcpStream, limits: &Limits) {
    let _ = stream.set_nodelay(true);
    if let Some(span) = limits.keep_alive {
        let keep_alive = TcpKeepalive::new().with_time(span);
        #[cfg(any(target_os = "linux", target_os = "macos", target_os = "windows"))]
        let keep_alive = keep_alive.with_interval(span);
        let _ = SockRef::from(stream).set_tcp_keepalive(&keep_alive);
    }
}

/// The wire of a connected stream.
pub(crate) fn wire(
    stream: TcpStream,
    framing: Option<Framing>,
    limits: &Limits,
) -> Wire<TcpTransport> {
    let facts = Connection::new("tcp").from(stream.peer_addr().ok());
    over(stream, facts, framing, limits)
}

/// Like [`wire`], for a stream with TLS.
#[cfg(feature = "tls")]
pub(crate) fn tls_wire(
    stream: TlsStream,
    framing: Option<Framing>,
    limits: &Limits,
) -> Wire<FramedStream<TlsStream>> {
    let mut facts = Connection::new("tls").from(stream.remote());
    if let Some(certificates) = stream.peer_certificates() {
        facts.extensions.insert(certificates);
    }
    over(stream, facts, framing, limits)
}

fn over<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    facts: Connection,
    framing: Option<Framing>,
    limits: &Limits,
) -> Wire<FramedStream<S>> {
    let at_eof = AtEof::Drain(Some(limits.shutdown_timeout));
    FramedStream::new(stream, framing, limits.longest_frame()).into_wire(facts, at_eof)
}
