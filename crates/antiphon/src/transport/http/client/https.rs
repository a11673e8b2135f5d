//! Exchanges by TLS, in the version of HTTP that the server picks.
//!
//! The first connection says which (ALPN, RFC 7301), and carries the first exchange; those after it
//! offer no other. Rejected: to ask each time, since an exchange is written before its connection is
//! made, and a server that changes its mind is a server that was replaced.

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
use super::http1::Http1;
use super::http2::Http2;
use super::request::RequestBuffer;
use super::response::Response;
use crate::BoxFuture;
use crate::endpoint::Authority;
use crate::transport::tls::{Connector, HTTP, HTTP1, HTTP2, TlsClient, TlsStream};

pub(super) struct Https {
    asking: HttpsConnector,
    one: Http1<HttpsConnector>,
    two: Http2<HttpsConnector>,
    /// Whether the server speaks HTTP/2, once it was asked.
    speaks_two: OnceCell<bool>,
}

impl Https {
    /// Connects to nothing yet.
    pub(super) fn new(
        authority: &Authority,
        uri: &Uri,
        tls: &TlsClient,
        settings: &HttpClientSettings<'_>,
    ) -> io::Result<Self> {
        let HttpClientSettings { headers, limits, http2, .. } = *settings;
        let mut connector = http_connector(limits);
        connector.enforce_http(false);
        let asking = HttpsConnector {
            plain: TcpConnector::new(connector, uri.clone()),
            tls: Connector::new(tls, &authority.host, &HTTP)?,
            limit: limits.handshake_timeout,
            insists: false,
            first: Arc::default(),
        };
        let two = HttpsConnector { insists: true, ..asking.offering(&HTTP2) };
        Ok(Self {
            one: Http1::new(asking.offering(&HTTP1), uri, headers, limits),
            two: Http2::new(two, uri.clone(), headers, limits),
            asking,
            speaks_two: OnceCell::new_with(http2.then_some(true)),
        })
    }

    pub(super) fn draft(&self, message: usize) -> RequestBuffer {
        self.one.draft(message)
    }

    pub(super) async fn post(&self, draft: RequestBuffer) -> Result<Response, ExchangeError> {
        match self.speaks_two.get_or_try_init(|| self.ask()).await? {
            true => self.two.post(draft).await,
            false => self.one.post(draft).await,
        }
    }

    /// The same for a request that says all by itself, but where it goes in a version that says it
    /// otherwise.
    pub(super) async fn post_whole(
        &self,
        mut request: Request<Bytes>,
        has_host: bool,
    ) -> Result<Response, ExchangeError> {
        if !*self.speaks_two.get_or_try_init(|| self.ask()).await? {
            return self.one.post_whole(&request).await;
        }
        if !has_host {
            request.headers_mut().remove(HOST);
        }
        self.two.post_whole(request).await
    }

    /// Connects, and leaves the connection to whoever can use it.
    async fn ask(&self) -> Result<bool, ExchangeError> {
        let stream = self.asking.connect().await?;
        let speaks_two = stream.protocol() == Some(HTTP2[0]);
        *self.asking.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        Ok(speaks_two)
    }
}

/// TLS on a socket.
#[derive(Clone)]
struct HttpsConnector {
    plain: TcpConnector,
    tls: Connector,
    /// How long a handshake may take.
    limit: Duration,
    /// On HTTP/2.
    insists: bool,
    /// A connection that is there already.
    first: Arc<Mutex<Option<TlsStream>>>,
}

impl HttpsConnector {
    fn offering(&self, protocols: &[&[u8]]) -> Self {
        Self { tls: self.tls.offering(protocols), ..self.clone() }
    }

    async fn shake(&self, stream: TcpStream) -> io::Result<TlsStream> {
        let stream = self.tls.connect_within(stream, self.limit).await?;
        if self.insists && stream.protocol() != Some(HTTP2[0]) {
            let text = "the server speaks no HTTP/2; leave it to pick HTTP/1.1";
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
        let stream = self.plain.connect().await?;
        self.shake(stream).await.map_err(|error| ExchangeError::Failed(error.to_string()))
    }
}

/// The same as hyper knows it.
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
