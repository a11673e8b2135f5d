//! Raw TCP.

use std::io;

use antiphon_core::Limits;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

#[cfg(feature = "tls")]
use super::tls::TlsStream;
use crate::connection::Connection;

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

/// The properties of the connection of a TCP stream.
pub(crate) fn facts(stream: &TcpStream) -> Connection {
    Connection::new("tcp").with_remote(stream.peer_addr().ok())
}

/// The properties of the connection of a TLS stream, with the certificates of the peer.
#[cfg(feature = "tls")]
pub(crate) fn tls_facts(stream: &TlsStream) -> Connection {
    let mut facts = Connection::new("tls").with_remote(stream.remote());
    if let Some(certificates) = stream.peer_certificates() {
        facts.extensions.insert(certificates);
    }
    facts
}
