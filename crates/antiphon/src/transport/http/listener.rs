//! Connections of an HTTP port: hyper speaks HTTP/1.1 and HTTP/2 on them, whichever the client does.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};
use std::time::Duration;

use antiphon_core::{ErrorObject, encode};
use bytes::BytesMut;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::{Builder, UpgradeableConnection};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::activity::Activity;
use super::answer;
use super::fast_path::{Ended, FastPath};
use super::pipeline::{Hold, Pipelined};
use super::remote::Remote;
use super::service::{Direct, HttpService};
use crate::engine::Settings;
use crate::io::{Meter, Metered, WakeGated};

/// How long a connection may rest between requests where no idle timeout is set.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// What HTTP is spoken over: a socket, or TLS on one.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Io for S {}

/// How to serve a connection; one for all of a port.
pub(crate) struct HttpServer {
    builder: Builder<TokioExecutor>,
    settings: Arc<Settings>,
}

impl HttpServer {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        let limits = &settings.limits;
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
        Self { builder, settings }
    }

    /// Serves one connection until it ends, or until that token is cancelled and what runs is done.
    pub(crate) fn serve(
        &self,
        stream: impl Io,
        service: HttpService,
        stopping: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let meter = Arc::<Meter>::default();
        let mut watch =
            WakeGated::new(watch(meter.clone(), service.activity.clone(), self.settings.clone()));
        let mut stopping = Some(WakeGated::new(stopping.cancelled_owned()));
        let mut serving = Driver::FastPath(Box::new(FastPath::new(stream, meter, service.clone())));
        let builder = self.builder.clone();
        poll_fn(move |cx| {
            if stopping.as_mut().is_some_and(|stopping| stopping.poll(cx).is_ready()) {
                stopping = None;
                serving.stop();
            }
            if let Poll::Ready(reason) = watch.poll(cx) {
                tracing::debug!(reason, "an HTTP connection is ended");
                return Poll::Ready(());
            }
            if let Driver::FastPath(usual) = &mut serving {
                // Layers are for every request, which then is hyper's.
                if !service.is_layered()
                    && let Ended::Over = ready!(usual.poll(cx))
                {
                    return Poll::Ready(());
                }
                serving.hand_over(&builder, service.clone());
                if stopping.is_none() {
                    serving.stop();
                }
            }
            serving.poll_hyper(cx)
        })
    }
}

impl HttpService {
    /// One connection over any stream, for who compares it with hyper's: `fuzz/`.
    #[doc(hidden)]
    pub async fn serve_stream(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let server = HttpServer::new(self.inner.dispatcher.settings.clone());
        server.serve(stream, self.for_one(Remote::default()), CancellationToken::new()).await;
    }
}

impl HttpServer {
    /// Tells a client of HTTP/2 that there is no room for it, for as long as it stays.
    pub(crate) async fn refuse_http2(&self, stream: impl Io) {
        let refusing = service_fn(|_: Request<Incoming>| async {
            let busy = ErrorObject::server_busy("too many connections");
            std::io::Result::Ok(answer::error(StatusCode::SERVICE_UNAVAILABLE, busy))
        });
        let _ = self.builder.serve_connection(TokioIo::new(stream), refusing).await;
    }
}

/// What serves a connection.
enum Driver<S: Io> {
    FastPath(Box<FastPath<S>>),
    Hyper(Pin<Box<HyperConnection<S>>>, Arc<Hold>),
    /// Between the two.
    Nothing,
}

type HyperConnection<S> =
    UpgradeableConnection<'static, TokioIo<Pipelined<Metered<S>>>, Direct, TokioExecutor>;

impl<S: Io> Driver<S> {
    /// Finishes what runs, and takes no more.
    fn stop(&mut self) {
        match self {
            Self::FastPath(usual) => usual.stop(),
            Self::Hyper(connection, _) => connection.as_mut().graceful_shutdown(),
            Self::Nothing => {}
        }
    }

    /// Lets hyper go on.
    fn hand_over(&mut self, builder: &Builder<TokioExecutor>, service: HttpService) {
        let Self::FastPath(usual) = std::mem::replace(self, Self::Nothing) else { return };
        let (stream, unread) = usual.into_parts();
        let stream = Pipelined::new(stream, unread);
        let hold = stream.hold();
        let connection =
            builder.serve_connection_with_upgrades(TokioIo::new(stream), Direct::new(service));
        *self = Self::Hyper(Box::pin(connection.into_owned()), hold);
    }

    fn poll_hyper(&mut self, cx: &mut Poller<'_>) -> Poll<()> {
        let Self::Hyper(connection, hold) = self else { return Poll::Ready(()) };
        hold.on();
        let mut ended = connection.as_mut().poll(cx);
        if hold.off() && ended.is_pending() {
            ended = connection.as_mut().poll(cx);
        }
        ended.map(|ended| {
            if let Err(error) = ended {
                tracing::debug!(%error, "an HTTP connection ended badly");
            }
        })
    }
}

/// Ready with a reason when the other side has stopped moving: before its first request, between
/// two, in the middle of a head, or with an answer that it does not read. A body that does not come
/// is the request's own matter: it is told. Heads that hyper reads it watches itself.
async fn watch(
    meter: Arc<Meter>,
    activity: Arc<Activity>,
    settings: Arc<Settings>,
) -> &'static str {
    let limits = &settings.limits;
    let idle = limits.idle_timeout.unwrap_or(KEEP_ALIVE);
    let shortest = idle.min(limits.stall_timeout).min(limits.handshake_timeout);
    let period = (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(15));
    let start = Instant::now();
    let mut last = ((0, 0), start);
    // Since when a head has not become whole, and how many requests had been served by then.
    let mut asking: Option<(u64, Instant)> = None;
    loop {
        sleep(period).await;
        let now = Instant::now();
        let served = activity.served();
        let state = (meter.moved(), served);
        if state != last.0 {
            last = (state, now);
        }
        let still = now - last.1;
        if meter.is_blocked() && still >= limits.stall_timeout {
            return "the answer is not being read";
        }
        if activity.is_busy() {
            if still >= limits.stall_timeout {
                activity.stall();
            }
            continue;
        }
        asking = match asking {
            _ if !activity.is_asking() => None,
            Some((before, since)) if before == served => Some((before, since)),
            _ => Some((served, now)),
        };
        let since = if served == 0 { Some(start) } else { asking.map(|(_, since)| since) };
        if since.is_some_and(|since| now - since >= limits.handshake_timeout) {
            return "no request came, or half of one";
        }
        if still >= idle {
            return "no further request came";
        }
    }
}

/// Tells a client that there is no room for it. The head of its request is read first: a client
/// takes no answer to what it has not asked.
pub(crate) async fn refuse(mut stream: impl Io) {
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

#[cfg(test)]
mod tests {
    use std::io;

    use bytes::Buf as _;
    use tokio::io::{DuplexStream, ReadBuf, duplex};

    use super::*;
    use crate::context::Context;
    use crate::router::Router;

    /// Takes whatever is written, and passes it on when it is flushed, as TLS may.
    struct Keeping {
        stream: DuplexStream,
        kept: BytesMut,
    }

    impl AsyncRead for Keeping {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Poller<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(cx, buf)
        }
    }

    impl AsyncWrite for Keeping {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Poller<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.kept.extend_from_slice(buf);
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<io::Result<()>> {
            let Self { stream, kept } = &mut *self;
            while !kept.is_empty() {
                let written = ready!(Pin::new(&mut *stream).poll_write(cx, kept))?;
                kept.advance(written);
            }
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<io::Result<()>> {
            ready!(self.as_mut().poll_flush(cx))?;
            Pin::new(&mut self.stream).poll_shutdown(cx)
        }
    }

    /// What hyper serves and what is served without it.
    #[tokio::test]
    async fn what_the_stream_has_taken_is_flushed() {
        let text = |(size,): (usize,), _cx: Context| async move { Ok("x".repeat(size)) };
        let service = HttpService::new(Router::new().method("text", text));
        let server = HttpServer::new(Arc::new(Settings::new(antiphon_core::Limits::default())));
        for (more, size) in [("", 1), ("", 99_999), ("te: x\r\n", 1), ("te: x\r\n", 99_999)] {
            let (stream, mut client) = duplex(1_000);
            let stream = Keeping { stream, kept: BytesMut::new() };
            let one = service.for_one(Remote::default());
            let serving = tokio::spawn(server.serve(stream, one, CancellationToken::new()));
            let body = format!(r#"{{"jsonrpc":"2.0","method":"text","params":[{size}],"id":1}}"#);
            let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
            let length = body.len();
            let request = format!("{head}{more}content-length: {length}\r\n\r\n{body}");
            let asking = async {
                client.write_all(request.as_bytes()).await?;
                let mut answer = BytesMut::new();
                while !answer.ends_with(b"\"id\":1}") {
                    client.read_buf(&mut answer).await?;
                }
                io::Result::Ok(answer.len())
            };
            let answered = timeout(Duration::from_secs(10), asking).await;
            assert!(answered.expect("it is kept").unwrap() > size);
            serving.abort();
        }
    }
}
