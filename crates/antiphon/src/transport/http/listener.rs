//! The connections of an HTTP port: the fast path first, then hyper with HTTP/1.1 or HTTP/2.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::{Builder, UpgradeableConnection};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::activity::RequestActivity;
use super::fast_path::{FastPath, FastPathEnd};
use super::fast_path_response::write_refusal;
use super::policy_exchange::GuardedPolicy;
use super::prefixed_stream::PrefixedStream;
use super::refusal::HttpRefusal;
use super::remote::Remote;
use super::request_future::{DISCARDED, RequestExchange};
use super::response::HttpResponse;
use super::service::{HttpService, HyperService};
use crate::engine::Settings;
use crate::io::stall::{StallClock, StallWhile, check_interval};
use crate::io::{Meter, Metered, WakeGated, linger};

/// The longest pause between two requests if no idle timeout is set.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// The longest timeout that hyper gets. It adds the timeout to the time of day, which must not
/// overflow: `Duration::MAX` means that there is no timeout.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A byte stream that carries HTTP: a socket, or TLS on one.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Io for S {}

/// Serves the connections of one port.
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
            .header_read_timeout(limits.handshake_timeout.min(LONGEST_TIMEOUT))
            .max_buf_size(64 * 1024);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(u32::try_from(limits.in_flight).unwrap_or(u32::MAX));
        Self { builder, settings }
    }

    /// Serves one connection until it ends. Once `stopping` is cancelled, it finishes the requests in
    /// flight and ends.
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
                tracing::debug!(reason, "an HTTP connection is closed");
                return Poll::Ready(());
            }
            if let Driver::FastPath(fast_path) = &mut serving {
                if !service.needs_hyper()
                    && let FastPathEnd::Closed = ready!(fast_path.poll(cx))
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
    /// Serves one connection over any stream. `fuzz/` compares it with hyper alone.
    #[doc(hidden)]
    pub async fn serve_stream(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let server = HttpServer::new(self.state.dispatcher.settings.clone());
        server.serve(stream, self.for_one(Remote::default()), CancellationToken::new()).await;
    }
}

impl HttpServer {
    /// Refuses a connection with status 503. The head of the first request is read first: a client
    /// ignores a response that precedes its request. The accept loop limits the time.
    pub(crate) fn refuse(
        &self,
        stream: impl Io,
        service: HttpService,
        is_http2: bool,
    ) -> impl Future<Output = ()> + Send + 'static {
        let builder = self.builder.clone();
        async move {
            if !is_http2 && service.state.http.policy.is_none() {
                let _ = refuse_by_hand(stream).await;
                return;
            }
            let refuse = service_fn(|request: Request<Incoming>| {
                let response = refuse_request(&service, request);
                std::future::ready(std::io::Result::Ok(response))
            });
            let _ = builder.serve_connection(TokioIo::new(stream), refuse).await;
        }
    }
}

fn refuse_request(service: &HttpService, request: Request<Incoming>) -> HttpResponse {
    let refusal = HttpRefusal::TooManyConnections;
    let Some(policy) = GuardedPolicy::of(&service.state) else { return refusal.into_response() };
    let exchange = RequestExchange::new(service);
    policy.refuse(&exchange.connection(request.into_parts().0), refusal)
}

async fn refuse_by_hand(mut stream: impl Io) -> std::io::Result<()> {
    let mut head = BytesMut::new();
    let is_whole = |head: &[u8]| head.windows(4).any(|window| window == b"\r\n\r\n");
    while head.len() < 16 * 1024 && !is_whole(&head) {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    let mut response = BytesMut::new();
    write_refusal(&HttpRefusal::TooManyConnections, &mut response);
    stream.write_all(&response).await?;
    linger::close(stream, DISCARDED).await;
    Ok(())
}

/// The two ways to serve a connection.
enum Driver<S: Io> {
    FastPath(Box<FastPath<S>>),
    Hyper(Pin<Box<HyperConnection<S>>>),
    /// During the handover.
    Neither,
}

type HyperConnection<S> = UpgradeableConnection<
    'static,
    TokioIo<PrefixedStream<Metered<S>>>,
    HyperService,
    TokioExecutor,
>;

impl<S: Io> Driver<S> {
    /// Finishes the requests in flight and accepts no more.
    fn stop(&mut self) {
        match self {
            Self::FastPath(fast_path) => fast_path.stop(),
            Self::Hyper(connection) => connection.as_mut().graceful_shutdown(),
            Self::Neither => {}
        }
    }

    /// Hands the connection over to hyper.
    fn hand_over(&mut self, builder: &Builder<TokioExecutor>, service: HttpService) {
        let Self::FastPath(fast_path) = std::mem::replace(self, Self::Neither) else { return };
        let (stream, unread) = fast_path.into_parts();
        let stream = TokioIo::new(PrefixedStream::new(stream, unread));
        let connection = builder.serve_connection_with_upgrades(stream, HyperService::new(service));
        *self = Self::Hyper(Box::pin(connection.into_owned()));
    }

    fn poll_hyper(&mut self, cx: &mut Poller<'_>) -> Poll<()> {
        let Self::Hyper(connection) = self else { return Poll::Ready(()) };
        connection.as_mut().poll(cx).map(|ended| {
            if let Err(error) = ended {
                tracing::debug!(%error, "an HTTP connection failed");
            }
        })
    }
}

/// Ready with a reason when the client has stalled: before its first request, between two requests, in
/// the middle of a head, or while it does not read a response. A body that stalls fails its own
/// request. Heads that hyper reads have hyper's timeout.
async fn watch(
    meter: Arc<Meter>,
    activity: Arc<RequestActivity>,
    settings: Arc<Settings>,
) -> &'static str {
    let limits = &settings.limits;
    let idle = limits.idle_timeout.unwrap_or(KEEP_ALIVE);
    let shortest = idle.min(limits.stall_timeout).min(limits.handshake_timeout);
    let interval = check_interval(shortest);
    let start = Instant::now();
    let mut moved = StallClock::new((0, 0), start);
    // The time for which a head has been incomplete. A served request restarts it.
    let mut partial_head = StallWhile::new();
    // The times for which a body of a request or response has waited for the client. They do not
    // include the time before, in which a handler may have run for long.
    let mut awaited_body = StallWhile::new();
    let mut unread_body = StallWhile::new();
    loop {
        sleep(interval).await;
        let now = Instant::now();
        let served = activity.served();
        let progress = (meter.moved(), served);
        moved.record(progress, now);
        let still = moved.elapsed(now);
        let has_stalled = |waited: Option<_>| waited >= Some(limits.stall_timeout);
        if meter.is_blocked() && has_stalled(Some(still))
            || has_stalled(unread_body.record(activity.has_unread_body(), progress, now))
        {
            return "the response is not being read";
        }
        let awaited = awaited_body.record(activity.has_awaited_body(), progress, now);
        if activity.is_active() {
            if has_stalled(awaited) {
                activity.stall();
            }
            continue;
        }
        let partial = partial_head.record(activity.has_partial_head(), served, now);
        let waited = if served == 0 { Some(now - start) } else { partial };
        if waited.is_some_and(|waited| waited >= limits.handshake_timeout) {
            return "no complete request came in time";
        }
        if still >= idle {
            return "no further request came";
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use bytes::Buf as _;
    use tokio::io::{DuplexStream, ReadBuf, duplex};
    use tokio::time::timeout;

    use super::*;
    use crate::context::Context;
    use crate::router::Router;

    /// Takes whatever is written, and passes it on when it is flushed, as TLS may.
    struct FlushedLater {
        stream: DuplexStream,
        kept: BytesMut,
    }

    impl AsyncRead for FlushedLater {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Poller<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(cx, buf)
        }
    }

    impl AsyncWrite for FlushedLater {
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

    /// Covers both hyper and the fast path.
    #[tokio::test]
    async fn what_the_stream_has_taken_is_flushed() {
        let text = |(size,): (usize,), _cx: Context| async move { Ok("x".repeat(size)) };
        let service = HttpService::new(Router::new().method("text", text));
        let server = HttpServer::new(Arc::new(Settings::new(antiphon_core::Limits::default())));
        for (more, size) in [("", 1), ("", 99_999), ("te: x\r\n", 1), ("te: x\r\n", 99_999)] {
            let (stream, mut client) = duplex(1_000);
            let stream = FlushedLater { stream, kept: BytesMut::new() };
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
