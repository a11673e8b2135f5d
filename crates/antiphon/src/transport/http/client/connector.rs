//! Opens connections to a server.

use antiphon_core::Limits;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tower_service::Service as _;

use super::error::ExchangeError;

/// Opens connections to one server: over TCP, or over TLS.
pub(super) trait StreamConnector {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn connect(&self) -> impl Future<Output = Result<Self::Stream, ExchangeError>> + Send;
}

/// Returns a connector that resolves names and tries their IPv6 and IPv4 addresses at once (RFC 6555).
pub(super) fn http_connector(limits: &Limits) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_keepalive(limits.keep_alive);
    connector.set_connect_timeout(Some(limits.handshake_timeout));
    connector
}

/// Opens TCP connections.
#[derive(Clone)]
pub(super) struct TcpConnector {
    connector: HttpConnector,
    uri: Uri,
}

impl TcpConnector {
    pub(super) fn new(connector: HttpConnector, uri: Uri) -> Self {
        Self { connector, uri }
    }
}

impl StreamConnector for TcpConnector {
    type Stream = TcpStream;

    async fn connect(&self) -> Result<TcpStream, ExchangeError> {
        let connected = self.connector.clone().call(self.uri.clone()).await;
        let stream =
            connected.map_err(|error| ExchangeError::Unreachable(ExchangeError::root(&error)))?;
        Ok(stream.into_inner())
    }
}
