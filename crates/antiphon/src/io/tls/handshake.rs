//! The server's side of the handshake: bounded in time, and helpful to who speaks no TLS.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{TlsServer, TlsStream};

/// What every TLS connection begins with: a record that holds a handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;
/// How long, and how much, of a client is let by that was refused: a socket that is closed with bytes
/// unread is reset, and the alert that says why would be lost.
const PATIENCE: Duration = Duration::from_secs(1);
const MAX_LET_BY: u64 = 64 * 1024;

/// What shakes hands with every client of an endpoint.
pub(crate) struct Acceptor {
    acceptor: TlsAcceptor,
    limit: Duration,
}

/// A client with which there is no TLS.
pub(crate) enum Unsecured {
    /// It speaks something else, of which nothing was read: it can be told.
    Plain(TcpStream),
    /// It is gone.
    Gone,
}

impl Acceptor {
    /// For an endpoint where these protocols are spoken; a handshake may take so long.
    pub(crate) fn new(tls: &TlsServer, protocols: &[&[u8]], limit: Duration) -> Self {
        Self { acceptor: tls.config(protocols).into(), limit }
    }

    /// Shakes hands. A failure is the client's matter: it is told by an alert, and the log at `debug`.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Result<TlsStream, Unsecured> {
        let shaken = timeout(self.limit, self.shake(stream)).await;
        shaken.unwrap_or_else(|_| {
            tracing::debug!(limit = ?self.limit, "a TLS handshake took too long");
            Err(Unsecured::Gone)
        })
    }

    async fn shake(&self, stream: TcpStream) -> Result<TlsStream, Unsecured> {
        match first_byte(&stream).await {
            Ok(Some(HANDSHAKE)) => {}
            Ok(Some(_)) => {
                tracing::debug!("a client speaks no TLS");
                return Err(Unsecured::Plain(stream));
            }
            Ok(None) | Err(_) => return Err(Unsecured::Gone),
        }
        match Box::pin(self.acceptor.accept(stream).into_fallible()).await {
            Ok(stream) => Ok(TlsStream::new(stream.into())),
            Err((error, stream)) => {
                let remote = stream.peer_addr().ok();
                tracing::debug!(%error, ?remote, "a TLS handshake failed");
                let_by(stream).await;
                Err(Unsecured::Gone)
            }
        }
    }
}

/// Looked at, and not taken.
async fn first_byte(stream: &TcpStream) -> io::Result<Option<u8>> {
    let mut byte = [0];
    let seen = stream.peek(&mut byte).await?;
    Ok((seen > 0).then_some(byte[0]))
}

/// Ends a connection on which the last is said.
async fn let_by(mut stream: TcpStream) {
    let ending = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(MAX_LET_BY), &mut tokio::io::sink()).await
    };
    let _ = timeout(PATIENCE, ending).await;
}

impl Unsecured {
    /// Says this to a client that speaks no TLS, and ends.
    pub(crate) async fn tell(self, text: &[u8]) {
        let Self::Plain(mut stream) = self else { return };
        if matches!(timeout(PATIENCE, stream.write_all(text)).await, Ok(Ok(()))) {
            let_by(stream).await;
        }
    }
}
