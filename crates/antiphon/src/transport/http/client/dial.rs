//! How a connection to a server is made: a socket, and TLS on it.

use antiphon_core::Limits;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tower_service::Service as _;

use super::fault::Fault;

/// Makes connections to one server.
pub(super) trait Dial {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn dial(&self) -> impl Future<Output = Result<Self::Stream, Fault>> + Send;
}

/// Looks names up and tries their addresses, IPv6 and IPv4 side by side (RFC 6555).
pub(super) fn connector(limits: &Limits) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_keepalive(limits.keep_alive);
    connector.set_connect_timeout(Some(limits.handshake_timeout));
    connector
}

/// A socket.
#[derive(Clone)]
pub(super) struct Plain {
    connector: HttpConnector,
    uri: Uri,
}

impl Plain {
    pub(super) fn new(connector: HttpConnector, uri: Uri) -> Self {
        Self { connector, uri }
    }
}

impl Dial for Plain {
    type Stream = TcpStream;

    async fn dial(&self) -> Result<TcpStream, Fault> {
        let connected = self.connector.clone().call(self.uri.clone()).await;
        let stream = connected.map_err(|error| Fault::Unreachable(Fault::root(&error)))?;
        Ok(stream.into_inner())
    }
}
