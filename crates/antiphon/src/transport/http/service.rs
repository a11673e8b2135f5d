//! The serving side, as a `tower` service: a POST body goes decode, dispatch, bytes.
//!
//! The handler runs inside the request's own future: when the client goes away, hyper drops it, and
//! that cancels what runs.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::{ErrorObject, Limits, Payload, Rules, decode};
use bytes::{Bytes, BytesMut};
use http::header::EXPECT;
use http::{Method, Request, StatusCode, request};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::answer::{self, HttpResponse};
use super::guard::Guard;
use crate::BoxFuture;
use crate::context::{Connection, OnConnect, Origin};
use crate::handler::Handler;
use crate::peer::dispatcher::{Dispatcher, Gate, Progress, Scratch, Started};
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
    inner: Arc<Inner>,
    remote: Option<SocketAddr>,
    activity: Arc<Activity>,
}

/// What goes on on one connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    running: AtomicUsize,
    served: AtomicU64,
}

impl Activity {
    pub(super) fn is_busy(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    pub(super) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    fn begin(self: &Arc<Self>) -> Busy {
        self.running.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }
}

/// One request under way.
struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.served.fetch_add(1, Ordering::Relaxed);
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) struct Inner {
    pub(super) dispatcher: Dispatcher,
    pub(super) rules: Rules,
    guard: Guard,
    /// Only this path, and every path where there is none.
    path: Option<String>,
    websocket_only: bool,
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
        Self { inner: self.inner.clone(), remote, activity: Arc::default() }
    }

    pub(super) fn activity(&self) -> Arc<Activity> {
        self.activity.clone()
    }

    /// Called while the service is built and nobody shares it yet.
    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }

    async fn respond<B>(self, mut request: Request<B>) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: std::fmt::Display,
    {
        let inner = &self.inner;
        let limits = &inner.dispatcher.limits;
        let cors = inner.guard.cors(request.headers());
        let asks = request.headers().contains_key(EXPECT);
        if let Some(response) = self.without_body(&mut request) {
            if !asks {
                let_by(request.into_body(), SMALL).await;
            }
            return response;
        }
        let too_large = request.body().size_hint().lower() > limits.frame_bytes as u64;
        if too_large && asks {
            return answer::too_large(limits.frame_bytes);
        }
        let (head, body) = request.into_parts();
        let mut response = match read_body(body, limits).await {
            Ok(body) => self.serve(head, &body).await,
            Err(response) => response,
        };
        response.headers_mut().extend(cors);
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
        if super::upgrade::is_wanted(request.headers()) {
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

    async fn serve(&self, head: request::Parts, body: &Bytes) -> HttpResponse {
        let Inner { dispatcher, rules, .. } = &*self.inner;
        let payload = decode(body, rules);
        let connection = Arc::new(self.connection(head));
        let gate = Gate::new(dispatcher.limits.in_flight);
        let run = run(dispatcher, payload, &gate, Origin::Request(connection));
        tokio::select! {
            biased;
            answer = run => answer::answered(answer),
            () = self.inner.expired() => {
                let busy = ErrorObject::server_busy("shutting down");
                answer::error(StatusCode::SERVICE_UNAVAILABLE, busy)
            }
        }
    }

    fn connection(&self, head: request::Parts) -> Connection {
        let (headers, extensions) = (head.headers, head.extensions);
        self.inner.complete(Connection {
            transport: "http",
            remote: self.remote,
            headers,
            extensions,
        })
    }
}

impl Inner {
    /// Ready when a shutdown waits no longer.
    async fn expired(&self) {
        match &self.peers {
            Some(peers) => peers.expiring().cancelled_owned().await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn complete(&self, mut connection: Connection) -> Connection {
        if let Some(complete) = &self.on_connect {
            complete(&mut connection);
        }
        connection
    }
}

async fn run(
    dispatcher: &Dispatcher,
    payload: Payload,
    gate: &Arc<Gate>,
    origin: Origin,
) -> Option<Bytes> {
    let mut parts = Some((payload, origin));
    let mut run = None;
    std::future::poll_fn(move |poller| {
        let progress = match (&mut run, parts.take()) {
            (None, Some((payload, origin))) => {
                let mut out = Scratch::new(0);
                match dispatcher.start(payload, gate, &origin, &mut out, poller) {
                    Started::Done(answer) => Progress::Done(answer),
                    Started::Running(progress, started) => {
                        run = Some(started);
                        progress
                    }
                }
            }
            (Some(run), _) => run.poll(poller),
            (None, None) => Progress::Done(None),
        };
        match progress {
            Progress::Done(answer) => Poll::Ready(answer),
            Progress::Detached | Progress::Blocked => Poll::Pending,
        }
    })
    .await
}

/// Reads a body within its limits of size and time. A body in one piece is not copied.
async fn read_body<B>(mut body: B, limits: &Limits) -> Result<Bytes, HttpResponse>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let limit = limits.frame_bytes;
    let mut size = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while size <= limit {
        let chunk = match timeout(limits.stall_timeout, body.frame()).await {
            Err(_) => {
                return Err(answer::text(StatusCode::REQUEST_TIMEOUT, "the body never came\n"));
            }
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

/// Lets some more of a refused body go by: a connection that is closed while its client still
/// sends is reset, and the client would not see why.
async fn let_by<B: Body<Data = Bytes> + Unpin>(mut body: B, mut bytes: usize) {
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
        let service = self.clone();
        let busy = self.activity.begin();
        Box::pin(async move {
            let _busy = busy;
            Ok(service.respond(request).await)
        })
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("guard", &self.inner.guard).finish_non_exhaustive()
    }
}
