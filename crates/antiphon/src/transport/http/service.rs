//! The serving side, as a `tower` service: a POST body goes decode, dispatch, bytes.
//!
//! The handler runs inside the request's own future: when the client goes away, hyper drops it, and
//! that cancels what runs.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::{Entries, ErrorObject, Limits, Payload, Rules, decode};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::header::EXPECT;
use http::{Method, Request, StatusCode, Version};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};

use super::activity::Activity;
use super::answer::{self, HttpResponse};
use super::guard::Guard;
use crate::BoxFuture;
use crate::context::{Connection, OnConnect, Origin};
use crate::handler::Handler;
use crate::peer::dispatcher::{Dispatcher, Progress, Run, Scratch, Started};
use crate::server::Peers;

/// What is let by of a body that nobody will look at.
const SMALL: usize = 64 * 1024;
/// How long the next piece of it is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Serves JSON-RPC by POST, and by WebSocket where the feature `ws` is on.
///
/// It is a `tower::Service`: mount it in an axum application with `route_service`. It cannot know
/// what address it is reached by: on a loopback address, give it
/// [`Guard::loopback_only`], which a [`Server`](crate::Server) does by itself.
///
/// ```no_run
/// use antiphon::{Context, Router, transport::http::HttpService};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let rpc = Router::new().method("ping", |(): (), _cx: Context| async {
///     Ok("pong")
/// });
/// let app: axum::Router = axum::Router::new().route_service("/rpc", HttpService::new(rpc));
/// axum::serve(tokio::net::TcpListener::bind("127.0.0.1:0").await?, app).await
/// # }
/// ```
#[derive(Clone)]
pub struct HttpService {
    pub(super) inner: Arc<Inner>,
    pub(super) remote: Option<SocketAddr>,
    pub(super) activity: Arc<Activity>,
}

pub(super) struct Inner {
    pub(super) dispatcher: Dispatcher,
    pub(super) rules: Rules,
    pub(super) guard: Guard,
    /// Only this path, and every path where there is none.
    pub(super) path: Option<String>,
    pub(super) websocket_only: bool,
    /// WebSockets made here end with these.
    pub(super) peers: Option<Peers>,
    on_connect: Option<OnConnect>,
}

impl HttpService {
    /// A service with default limits.
    pub fn new(handler: impl Handler) -> Self {
        Self::with_limits(handler, Limits::default())
    }

    /// A service with these limits.
    pub fn with_limits(handler: impl Handler, limits: Limits) -> Self {
        let rules = limits.rules();
        Self::build(Arc::new(handler), Arc::new(limits), rules, Guard::new())
    }

    pub(crate) fn build(
        handler: Arc<dyn Handler>,
        limits: Arc<Limits>,
        rules: Rules,
        guard: Guard,
    ) -> Self {
        let inner = Inner {
            dispatcher: Dispatcher { handler, limits },
            rules,
            guard,
            path: None,
            websocket_only: false,
            peers: None,
            on_connect: None,
        };
        Self { inner: Arc::new(inner), remote: None, activity: Arc::default() }
    }

    /// Serves these Hosts and Origins.
    #[must_use]
    pub fn guard(self, guard: Guard) -> Self {
        self.change(|inner| inner.guard = guard)
    }

    /// Serves this path and no other.
    pub(crate) fn at_path(self, path: &str) -> Self {
        let path = (path != "/").then(|| path.to_owned());
        self.change(|inner| inner.path = path)
    }

    pub(crate) fn websocket_only(self) -> Self {
        self.change(|inner| inner.websocket_only = true)
    }

    /// WebSockets made here end with these.
    pub(crate) fn among(self, peers: Peers, on_connect: Option<OnConnect>) -> Self {
        self.change(|inner| {
            inner.peers = Some(peers);
            inner.on_connect = on_connect;
        })
    }

    /// The same service for one connection.
    pub(crate) fn for_remote(&self, remote: Option<SocketAddr>) -> Self {
        Self { inner: self.inner.clone(), remote, activity: Activity::watched() }
    }

    /// Called while the service is built and nobody shares it yet.
    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }

    fn boxed<B>(&self, request: Request<B>) -> BoxFuture<'static, Result<HttpResponse, Infallible>>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Display,
    {
        let service = self.clone();
        let busy = self.activity.begin();
        Box::pin(service.respond(request).map(move |response| {
            drop(busy);
            Ok(response)
        }))
    }

    async fn respond<B>(self, mut request: Request<B>) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: std::fmt::Display,
    {
        let limits = &self.inner.dispatcher.limits;
        let asks = |request: &Request<B>| request.headers().contains_key(EXPECT);
        if let Some(response) = self.without_body(&mut request) {
            if !asks(&request) {
                let_by(request.body_mut(), SMALL).await;
            }
            return response;
        }
        let too_large = request.body().size_hint().lower() > limits.frame_bytes as u64;
        if too_large && asks(&request) {
            return answer::too_large(limits.frame_bytes);
        }
        let cors = self.inner.guard.cors(request.headers());
        // The streams of HTTP/2 share a connection, and one may stall while the others move.
        let watched = self.activity.watched && request.version() < Version::HTTP_2;
        let watch = watched.then_some(&*self.activity);
        let mut response = match read_body(request.body_mut(), limits, watch).await {
            Ok(body) => self.serve(&mut request, &body).await,
            Err(response) => response,
        };
        if let Some(cors) = cors {
            response.headers_mut().extend(cors);
        }
        response
    }

    /// The answer to what is no message by POST.
    fn without_body<B>(&self, request: &mut Request<B>) -> Option<HttpResponse> {
        let inner = &self.inner;
        if let Err(reason) = inner.guard.check(request.uri(), request.headers()) {
            return Some(answer::text(StatusCode::FORBIDDEN, reason));
        }
        if inner.path.as_ref().is_some_and(|path| path != request.uri().path()) {
            let reason = "there is no endpoint at this path\n";
            return Some(answer::text(StatusCode::NOT_FOUND, reason));
        }
        #[cfg(feature = "ws")]
        if request.method() != Method::POST && super::upgrade::is_wanted(request.headers()) {
            return Some(super::upgrade::accept(request, inner, self.remote));
        }
        if inner.websocket_only {
            return Some(answer::upgrade_required());
        }
        if request.method() == Method::OPTIONS
            && let Some(headers) = inner.guard.preflight(request.headers())
        {
            return Some(answer::with_headers(StatusCode::NO_CONTENT, headers));
        }
        if request.method() != Method::POST {
            return Some(answer::method_not_allowed());
        }
        (!answer::is_json(request.headers())).then(answer::unsupported_media_type)
    }

    async fn serve<B>(&self, request: &mut Request<B>, body: &Bytes) -> HttpResponse {
        let Inner { dispatcher, rules, .. } = &*self.inner;
        let mut payload = Some(decode(body, rules));
        let origin = Origin::Request(Arc::new(self.connection(request)));
        let started = poll_fn(|poller| {
            let mut out = Scratch::single();
            let payload = payload.take().unwrap_or(Payload::Batch(Entries::default()));
            Poll::Ready(dispatcher.start(payload, None, &origin, &mut out, poller))
        });
        match started.await {
            Started::Done(answer) => answer::answered(answer),
            Started::Running(_, run) => self.finish(run).await,
        }
    }

    /// Drives on what waits, until it is done or a shutdown waits no longer.
    async fn finish(&self, mut run: Box<Run>) -> HttpResponse {
        let run = poll_fn(move |poller| match run.poll(poller) {
            Progress::Done(answer) => Poll::Ready(answer),
            Progress::Detached | Progress::Blocked => Poll::Pending,
        });
        tokio::select! {
            biased;
            answer = run => answer::answered(answer),
            () = self.inner.expired() => {
                let busy = ErrorObject::server_busy("shutting down");
                answer::error(StatusCode::SERVICE_UNAVAILABLE, busy)
            }
        }
    }

    fn connection<B>(&self, request: &mut Request<B>) -> Connection {
        self.inner.complete(Connection {
            transport: "http",
            remote: self.remote,
            headers: std::mem::take(request.headers_mut()).into(),
            extensions: std::mem::take(request.extensions_mut()),
        })
    }
}

impl Inner {
    /// Ready when a shutdown waits no longer.
    pub(super) fn expired(&self) -> impl Future<Output = ()> + Send + 'static {
        let expiring = self.peers.as_ref().map(Peers::expiring);
        async move {
            match expiring {
                Some(expiring) => expiring.cancelled_owned().await,
                None => std::future::pending().await,
            }
        }
    }

    pub(super) fn complete(&self, mut connection: Connection) -> Connection {
        if let Some(complete) = &self.on_connect {
            complete(&mut connection);
        }
        connection
    }
}

/// Reads a body within its limits of size and time. A body in one piece is not copied.
async fn read_body<B>(
    body: &mut B,
    limits: &Limits,
    watch: Option<&Activity>,
) -> Result<Bytes, HttpResponse>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let limit = limits.frame_bytes;
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut size = announced;
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while size <= limit {
        let chunk = match next_frame(body, limits.stall_timeout, watch).await {
            Err(Stalled) => return Err(answer::stalled()),
            Ok(None) => return Ok(if whole.is_empty() { first } else { whole.freeze() }),
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "a body broke off");
                return Err(answer::text(StatusCode::BAD_REQUEST, "the body broke off\n"));
            }
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        size = first.len() + whole.len() + chunk.len();
        if size > limit {
            break;
        }
        if size == announced && whole.is_empty() && first.is_empty() {
            return Ok(chunk);
        }
        if whole.is_empty() && first.is_empty() {
            first = chunk;
        } else {
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&chunk);
        }
    }
    drop((first, whole));
    let_by(body, 4 * limit.min(16 << 20)).await;
    Err(answer::too_large(limit))
}

/// A body has stopped coming.
struct Stalled;

/// The next piece of a body, or that it does not come: told by whoever watches the connection, or by
/// a timer.
async fn next_frame<B>(
    body: &mut B,
    limit: Duration,
    watch: Option<&Activity>,
) -> Result<Option<Result<Frame<Bytes>, B::Error>>, Stalled>
where
    B: Body<Data = Bytes> + Unpin,
{
    // Made when it is needed: most bodies are there.
    let mut timer = None;
    let frame = poll_fn(|poller| match (Pin::new(&mut *body).poll_frame(poller), watch) {
        (Poll::Ready(frame), _) => Poll::Ready(Ok(frame)),
        (Poll::Pending, Some(watch)) => watch.poll_stalled(poller).map(|()| Err(Stalled)),
        (Poll::Pending, None) => {
            let timer = timer.get_or_insert_with(|| Box::pin(sleep(limit)));
            timer.as_mut().poll(poller).map(|()| Err(Stalled))
        }
    });
    let frame = frame.await;
    if let Some(watch) = watch {
        watch.moves_on();
    }
    frame
}

/// Lets some more of a refused body go by: a connection that is closed while its client still
/// sends is reset, and the client would not see why.
async fn let_by<B: Body<Data = Bytes> + Unpin>(body: &mut B, mut bytes: usize) {
    while let Ok(Some(Ok(frame))) = timeout(PATIENCE, body.frame()).await {
        let len = frame.data_ref().map_or(0, Bytes::len);
        if len > bytes {
            return;
        }
        bytes -= len;
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.boxed(request)
    }
}

/// The same service as hyper knows it, for our own listener.
pub(super) struct Direct(pub(super) HttpService);

impl hyper::service::Service<Request<Incoming>> for Direct {
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.0.boxed(request)
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("guard", &self.inner.guard).finish_non_exhaustive()
    }
}
