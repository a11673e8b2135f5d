//! Connections of an HTTP port: hyper speaks HTTP/1.1 and HTTP/2 on them, whichever the client does.

use std::time::Duration;

use antiphon_core::{ErrorObject, Limits, encode};
use bytes::BytesMut;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::service::HttpService;

/// How to serve a connection; one for all of a port.
pub(crate) struct HttpServer(Builder<TokioExecutor>);

impl HttpServer {
    pub(crate) fn new(limits: &Limits) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.handshake_timeout)
            .pipeline_flush(true)
            .max_buf_size(64 * 1024);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(limits.idle_timeout)
            .max_concurrent_streams(u32::try_from(limits.in_flight).unwrap_or(u32::MAX));
        Self(builder)
    }

    /// Serves one connection until it ends, or until that token is cancelled and what runs is done.
    pub(crate) fn serve(
        &self,
        stream: TcpStream,
        service: HttpService,
        stopping: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let builder = self.0.clone();
        async move {
            let service = TowerToHyperService::new(service);
            let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
            tokio::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stopping.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "an HTTP connection ended badly");
            }
        }
    }
}

/// Tells a client that there is no room for it, without reading more of its request than it takes
/// for the answer to arrive.
pub(crate) async fn refuse(mut stream: TcpStream) {
    let mut body = BytesMut::new();
    let busy = ErrorObject::server_busy("too many connections");
    encode::response(&antiphon_core::Id::Null, &Err(busy), &mut body);
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let answer = [head.as_bytes(), &body].concat();
    let exchange = async {
        stream.write_all(&answer).await?;
        stream.shutdown().await?;
        while stream.read(&mut [0; 4096]).await? > 0 {}
        std::io::Result::Ok(())
    };
    // A client that goes on sending is cut off: it has its answer.
    let _ = timeout(Duration::from_secs(1), exchange).await;
}
