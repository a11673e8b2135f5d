//! Exchanges over TLS, in the version of HTTP that the server picks.
//!
//! The first connection negotiates it by ALPN (RFC 7301) and carries the first exchange. Later connections
//! offer that version only. Rejected: to negotiate on each connection. An exchange is encoded before its
//! connection exists, and a server changes its version only when it is replaced.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, Uri};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tower_service::Service;

use super::HttpClientSettings;
use super::connector::{StreamConnector, TcpConnector, http_connector};
use super::error::ExchangeError;
use super::http1_client::Http1;
use super::http2_client::Http2;
use super::request::RequestBuffer;
use super::response::ReceivedResponse;
use crate::BoxFuture;
use crate::endpoint::Authority;
use crate::transport::tls::{Connector, HTTP, HTTP1, HTTP2, TlsClient, TlsStream};

pub(super) struct Https {
    negotiating: HttpsConnector,
    http1: Http1<HttpsConnector>,
    http2: Http2<HttpsConnector>,
    /// Whether the server speaks HTTP/2; empty until the first connection.
    speaks_http2: OnceCell<bool>,
}

impl Https {
    /// Connects on first use.
    pub(super) fn new(
        authority: &Authority,
        uri: &Uri,
        tls: &TlsClient,
        settings: &HttpClientSettings<'_>,
    ) -> io::Result<Self> {
        let HttpClientSettings { headers, limits, http2, .. } = *settings;
        let mut connector = http_connector(limits);
        connector.enforce_http(false);
        let negotiating = HttpsConnector {
            tcp: TcpConnector::new(connector, uri.clone()),
            tls: Connector::new(tls, &authority.host, &HTTP)?,
            limit: limits.handshake_timeout,
            requires_http2: false,
            first: Arc::default(),
        };
        let http2_connector =
            HttpsConnector { requires_http2: true, ..negotiating.offering(&HTTP2) };
        Ok(Self {
            http1: Http1::new(negotiating.offering(&HTTP1), uri, headers, limits),
            http2: Http2::new(http2_connector, uri.clone(), headers, limits),
            negotiating,
            speaks_http2: OnceCell::new_with(http2.then_some(true)),
        })
    }

    pub(super) fn buffer(&self, message: usize) -> RequestBuffer {
        self.http1.buffer(message)
    }

    pub(super) async fn post(
        &self,
        buffer: RequestBuffer,
    ) -> Result<ReceivedResponse, ExchangeError> {
        match self.speaks_http2.get_or_try_init(|| self.negotiate()).await? {
            true => self.http2.post(buffer).await,
            false => self.http1.post(buffer).await,
        }
    }

    /// Like `post`, for a complete request. Over HTTP/2 the address has the host, so a `Host` that the
    /// user has not set is removed.
    pub(super) async fn post_whole(
        &self,
        mut request: Request<Bytes>,
        has_host: bool,
    ) -> Result<ReceivedResponse, ExchangeError> {
        if !*self.speaks_http2.get_or_try_init(|| self.negotiate()).await? {
            return self.http1.post_whole(&request).await;
        }
        if !has_host {
            request.headers_mut().remove(HOST);
        }
        self.http2.post_whole(request).await
    }

    /// Opens the first connection, and keeps it for the first exchange.
    async fn negotiate(&self) -> Result<bool, ExchangeError> {
        let stream = self.negotiating.connect().await?;
        let speaks_http2 = stream.protocol() == Some(HTTP2[0]);
        *self.negotiating.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        Ok(speaks_http2)
    }
}

/// Opens TLS connections.
#[derive(Clone)]
struct HttpsConnector {
    tcp: TcpConnector,
    tls: Connector,
    /// The timeout of a handshake.
    limit: Duration,
    /// Whether a server without HTTP/2 is an error.
    requires_http2: bool,
    /// The connection that negotiated the version, until an exchange takes it.
    first: Arc<Mutex<Option<TlsStream>>>,
}

impl HttpsConnector {
    fn offering(&self, protocols: &[&[u8]]) -> Self {
        Self { tls: self.tls.offering(protocols), ..self.clone() }
    }

    async fn handshake(&self, stream: TcpStream) -> io::Result<TlsStream> {
        let stream = self.tls.connect_within(stream, self.limit).await?;
        if self.requires_http2 && stream.protocol() != Some(HTTP2[0]) {
            let text = "the server does not support HTTP/2; remove `ClientBuilder::http2`";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(stream)
    }
}

impl StreamConnector for HttpsConnector {
    type Stream = TlsStream;

    async fn connect(&self) -> Result<TlsStream, ExchangeError> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(first) = first {
            return Ok(first);
        }
        let stream = self.tcp.connect().await?;
        self.handshake(stream).await.map_err(|error| ExchangeError::Unreachable(error.into()))
    }
}

/// The connector of hyper's client.
impl Service<Uri> for HttpsConnector {
    type Response = TokioIo<TlsStream>;
    type Error = ExchangeError;
    type Future = BoxFuture<'static, Result<Self::Response, ExchangeError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ExchangeError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { this.connect().await.map(TokioIo::new) })
    }
}

impl Connection for TlsStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
