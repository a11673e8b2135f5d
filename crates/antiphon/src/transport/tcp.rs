//! Raw TCP.

use std::io;

use antiphon_core::Limits;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

#[cfg(feature = "tls")]
use super::tls::TlsStream;
use crate::connection::Connection;

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

/// The facts of a connected stream.
pub(crate) fn facts(stream: &TcpStream) -> Connection {
    Connection::new("tcp").from(stream.peer_addr().ok())
}

/// The facts of a connected stream under TLS, with the certificates of the other side.
#[cfg(feature = "tls")]
pub(crate) fn tls_facts(stream: &TlsStream) -> Connection {
    let mut facts = Connection::new("tls").from(stream.remote());
    if let Some(certificates) = stream.peer_certificates() {
        facts.extensions.insert(certificates);
    }
    facts
}
