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

/// Connects.
pub(crate) async fn connect(authority: &str, limits: &Limits) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(authority).await?;
    prepare(&stream, limits);
    Ok(stream)
}

/// Without Nagle's delay, and with the system's questions whether the other side is there. A socket
/// that takes neither works all the same.
pub(crate) fn prepare(stream: &TcpStream, limits: &Limits) {
    let _ = stream.set_nodelay(true);
    if let Some(span) = limits.keep_alive {
        let asking = TcpKeepalive::new().with_time(span);
        #[cfg(any(target_os = "linux", target_os = "macos", target_os = "windows"))]
        let asking = asking.with_interval(span);
        let _ = SockRef::from(stream).set_tcp_keepalive(&asking);
    }
}

/// A wire of a connected stream.
pub(crate) fn wire(
    stream: TcpStream,
    framing: Option<Framing>,
    limits: &Limits,
) -> Wire<TcpTransport> {
    let facts = Connection::new("tcp").from(stream.peer_addr().ok());
    over(stream, facts, framing, limits)
}

/// The same for a stream under TLS.
#[cfg(feature = "tls")]
pub(crate) fn tls_wire(
    stream: TlsStream,
    framing: Option<Framing>,
    limits: &Limits,
) -> Wire<FramedStream<TlsStream>> {
    let mut facts = Connection::new("tls").from(stream.remote());
    if let Some(shown) = stream.peer_certificates() {
        facts.extensions.insert(shown);
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
