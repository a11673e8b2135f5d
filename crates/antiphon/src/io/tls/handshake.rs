//! The server's side of the TLS handshake, with a timeout and a check for clients without TLS.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{TlsServer, TlsStream};
use crate::io::linger;

/// The first byte of every TLS connection: a record of type handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;
/// The maximum time to write the reply to a client without TLS.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of bytes discarded from a rejected client. Without the lingering close, the
/// client would lose the alert that gives the reason.
const MAX_DISCARDED: usize = 64 * 1024;

/// Accepts the TLS connections of one endpoint.
pub(crate) struct Acceptor {
    acceptor: TlsAcceptor,
    limit: Duration,
}

/// The reason why there is no TLS connection with a client.
pub(crate) enum HandshakeError {
    /// The client does not speak TLS. Nothing was read, so a plain-text reply is possible.
    NotTls(TcpStream),
    /// The handshake failed or timed out, or the client has closed the connection.
    Failed,
}

impl Acceptor {
    /// Creates the acceptor of an endpoint with these application protocols. `limit` is the timeout
    /// of a handshake.
    pub(crate) fn new(tls: &TlsServer, protocols: &[&[u8]], limit: Duration) -> Self {
        Self { acceptor: tls.config(protocols).into(), limit }
    }

    /// Performs the handshake. A failure is sent to the client as an alert and logged at `debug`: it
    /// concerns that client only.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Result<TlsStream, HandshakeError> {
        let outcome = timeout(self.limit, self.handshake(stream)).await;
        outcome.unwrap_or_else(|_| {
            tracing::debug!(limit = ?self.limit, "TLS handshake timed out");
            Err(HandshakeError::Failed)
        })
    }

    async fn handshake(&self, stream: TcpStream) -> Result<TlsStream, HandshakeError> {
        match peek_first_byte(&stream).await {
            Ok(Some(HANDSHAKE)) => {}
            Ok(Some(_)) => {
                tracing::debug!("client does not speak TLS");
                return Err(HandshakeError::NotTls(stream));
            }
            Ok(None) | Err(_) => return Err(HandshakeError::Failed),
        }
        match Box::pin(self.acceptor.accept(stream).into_fallible()).await {
            Ok(stream) => Ok(TlsStream::new(stream.into())),
            Err((error, stream)) => {
                let remote = stream.peer_addr().ok();
                tracing::debug!(%error, ?remote, "TLS handshake failed");
                linger::close(stream, MAX_DISCARDED).await;
                Err(HandshakeError::Failed)
            }
        }
    }
}

async fn peek_first_byte(stream: &TcpStream) -> io::Result<Option<u8>> {
    let mut byte = [0];
    let peeked = stream.peek(&mut byte).await?;
    Ok((peeked > 0).then_some(byte[0]))
}

impl HandshakeError {
    /// Sends this text to a client that does not speak TLS, and closes the connection.
    pub(crate) async fn reply_and_close(self, text: &[u8]) {
        let Self::NotTls(mut stream) = self else { return };
        if matches!(timeout(REPLY_TIMEOUT, stream.write_all(text)).await, Ok(Ok(()))) {
            linger::close(stream, MAX_DISCARDED).await;
        }
    }
}
