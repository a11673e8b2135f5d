//! A TLS connection after its handshake.
//!
//! Invariant: a read reports the end of the stream only after a `close_notify` of the peer. A
//! connection that is cut off without it reads as an error: otherwise an attacker who can cut the
//! connection could truncate a message.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::{PeerCertificates, error};

/// A TCP connection with TLS. Written bytes may stay in a buffer until a flush. A shutdown sends
/// `close_notify`.
#[derive(Debug)]
pub struct TlsStream(
    /// Boxed, because the state of a session is large and its owners are moved.
    Box<tokio_rustls::TlsStream<TcpStream>>,
);

impl TlsStream {
    pub(super) fn new(stream: tokio_rustls::TlsStream<TcpStream>) -> Self {
        Self(Box::new(stream))
    }

    /// The certificate chain of the peer, if it has sent one.
    pub fn peer_certificates(&self) -> Option<PeerCertificates> {
        PeerCertificates::new(self.0.get_ref().1.peer_certificates())
    }

    /// The negotiated application protocol (ALPN), such as `h2`.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.0.get_ref().1.alpn_protocol()
    }

    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        self.0.get_ref().0.peer_addr().ok()
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf).map_err(error::connection_failed)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
