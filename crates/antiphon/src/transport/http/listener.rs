//! Connections of an HTTP port: hyper speaks HTTP/1.1 and HTTP/2 on them, whichever the client does.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{ErrorObject, Limits, encode};
use bytes::BytesMut;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::service::{Activity, HttpService};
use crate::transport::{Meter, Metered};

/// How long a connection may rest between requests where no idle timeout is set.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How to serve a connection; one for all of a port.
pub(crate) struct HttpServer {
    builder: Builder<TokioExecutor>,
    limits: Arc<Limits>,
}

impl HttpServer {
    pub(crate) fn new(limits: Arc<Limits>) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.handshake_timeout)
            .max_buf_size(64 * 1024);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(u32::try_from(limits.in_flight).unwrap_or(u32::MAX));
        Self { builder, limits }
    }

    /// Serves one connection until it ends, or until that token is cancelled and what runs is done.
    pub(crate) fn serve(
        &self,
        stream: TcpStream,
        service: HttpService,
        stopping: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let builder = self.builder.clone();
        let limits = self.limits.clone();
        async move {
            let stream = Metered::new(stream);
            let watch = watch(stream.meter(), service.activity(), limits);
            let service = TowerToHyperService::new(service);
            let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
            let serving = async {
                tokio::pin!(connection);
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = stopping.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            };
            tokio::select! {
                ended = serving => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "an HTTP connection ended badly");
                    }
                }
                reason = watch => tracing::debug!(reason, "an HTTP connection is ended"),
            }
        }
    }
}

/// Ready with a reason when the other side has stopped moving: before its first request, between
/// two, or with an answer that it does not read. hyper itself watches only a head that has begun.
async fn watch(meter: Arc<Meter>, activity: Arc<Activity>, limits: Arc<Limits>) -> &'static str {
    let idle = limits.idle_timeout.unwrap_or(KEEP_ALIVE);
    let shortest = idle.min(limits.stall_timeout).min(limits.handshake_timeout);
    let period = (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(15));
    let start = Instant::now();
    let mut last = ((0, 0), start);
    loop {
        sleep(period).await;
        let now = Instant::now();
        let state = (meter.moved(), activity.served());
        if state != last.0 {
            last = (state, now);
        }
        let still = now - last.1;
        if meter.is_blocked() && still >= limits.stall_timeout {
            return "the answer is not being read";
        }
        if activity.is_busy() {
            continue;
        }
        if activity.served() == 0 && now - start >= limits.handshake_timeout {
            return "no request came";
        }
        if still >= idle {
            return "no further request came";
        }
    }
}

/// Tells a client that there is no room for it. The head of its request is read first: a client
/// takes no answer to what it has not asked.
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
        let mut head = BytesMut::new();
        let is_whole = |head: &[u8]| head.windows(4).any(|window| window == b"\r\n\r\n");
        while head.len() < 16 * 1024 && !is_whole(&head) {
            if stream.read_buf(&mut head).await? == 0 {
                break;
            }
        }
        stream.write_all(&answer).await?;
        stream.shutdown().await?;
        while stream.read(&mut [0; 4096]).await? > 0 {}
        std::io::Result::Ok(())
    };
    // A client that goes on sending is cut off: it has its answer.
    let _ = timeout(Duration::from_secs(1), exchange).await;
}
