//! Sends HTTP requests, and returns responses whose bodies are streams.
//!
//! This is the only file that knows the HTTP library. The library's own HTTP client reads bodies as a whole, so it cannot
//! be used for event streams. TLS is the library's.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use antiphon::http::{Request, Response, Uri};
use antiphon::{BoxFuture, Cause, ErrorChain, Limits};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

use crate::client::error::McpError;

/// Connections to one server, which requests share.
#[derive(Clone)]
pub(super) struct HttpConnections {
    client: Client<Connector, Full<Bytes>>,
    server: Arc<str>,
}

impl HttpConnections {
    pub(super) fn new(
        uri: &Uri,
        limits: &Limits,
        #[cfg(feature = "tls")] tls: antiphon::transport::tls::TlsClient,
    ) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(limits.handshake_timeout));
        let connector = Connector {
            tcp,
            #[cfg(feature = "tls")]
            tls,
            #[cfg(feature = "tls")]
            limit: limits.handshake_timeout,
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(std::time::Duration::from_secs(30))
            .build(connector);
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let server = format!("{}://{authority}", uri.scheme_str().unwrap_or("http"));
        Self { client, server: server.into() }
    }

    /// Sends a request. Returns when the head of the response has arrived.
    pub(super) async fn send(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Incoming>, McpError> {
        self.client.request(request.map(Full::new)).await.map_err(|error| McpError::Unreachable {
            server: self.server.to_string(),
            source: Cause::new(ErrorChain(&error).to_string()),
        })
    }
}

/// Opens connections over TCP or TLS.
#[derive(Clone)]
struct Connector {
    tcp: HttpConnector,
    #[cfg(feature = "tls")]
    tls: antiphon::transport::tls::TlsClient,
    /// The timeout of a TLS handshake.
    #[cfg(feature = "tls")]
    limit: std::time::Duration,
}

impl Connector {
    async fn connect(mut self, uri: Uri) -> io::Result<Stream> {
        let connected = self.tcp.call(uri.clone()).await;
        let tcp = connected.map_err(|error| io::Error::other(ErrorChain(&error).to_string()))?;
        if uri.scheme_str() != Some("https") {
            return Ok(Stream(Box::new(tcp.into_inner())));
        }
        #[cfg(feature = "tls")]
        {
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
            let handshake = self.tls.connect(tcp.into_inner(), host);
            let stream = tokio::time::timeout(self.limit, handshake).await;
            let late =
                |_| io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long");
            Ok(Stream(Box::new(stream.map_err(late)??)))
        }
        #[cfg(not(feature = "tls"))]
        Err(io::Error::new(io::ErrorKind::Unsupported, "https: needs the feature `tls`"))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { this.connect(uri).await.map(TokioIo::new) })
    }
}

/// A connection over TCP or TLS.
struct Stream(Box<dyn ReadWrite>);

trait ReadWrite: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ReadWrite for S {}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
