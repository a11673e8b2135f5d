//! The serving side, as a `tower` service: what it serves, and which requests are messages at all.
//!
//! A handler runs inside the request's own future (`respond.rs`): when the client goes away, hyper
//! drops it, and that cancels what runs.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::Limits;
use bytes::Bytes;
use http::header::UPGRADE;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body::Body;
use hyper::body::Incoming;

use super::activity::Activity;
use super::answer::{self, HttpResponse};
use super::guard::{self, Guard};
use super::remote::Remote;
use super::respond::Respond;
use super::server_service::HttpServerService;
use crate::BoxFuture;
use crate::dialect::Dialect;
use crate::engine::{Dispatcher, Settings};
use crate::handler::Handler;
use crate::peer::ConnectionRegistry;

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
    pub(super) remote: Remote,
    pub(super) activity: Arc<Activity>,
}

pub(super) struct Inner {
    pub(super) dispatcher: Dispatcher,
    pub(super) guard: Guard,
    /// Only this path, and every path where there is none.
    pub(super) path: Option<String>,
    pub(super) websocket_only: bool,
    /// WebSockets made here end with these.
    pub(super) peers: Option<ConnectionRegistry>,
    pages: Vec<Page>,
    /// What stands around each request.
    layers: Option<HttpServerService>,
}

/// What is read by GET beside the service.
#[derive(Clone)]
pub(crate) struct Page {
    path: String,
    content_type: HeaderValue,
    text: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Page {
    pub(crate) fn new(
        path: &str,
        content_type: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        let content_type = HeaderValue::from_static(content_type);
        Self { path: path.to_owned(), content_type, text: Arc::new(text) }
    }
}

impl HttpService {
    /// A service with default limits.
    pub fn new(handler: impl Handler) -> Self {
        Self::with_limits(handler, Limits::default())
    }

    /// A service with these limits.
    pub fn with_limits(handler: impl Handler, limits: Limits) -> Self {
        Self::build(Arc::new(handler), Arc::new(Settings::new(limits)), Guard::new())
    }

    pub(crate) fn build(handler: Arc<dyn Handler>, settings: Arc<Settings>, guard: Guard) -> Self {
        let inner = Inner {
            dispatcher: Dispatcher { handler, settings },
            guard,
            path: None,
            websocket_only: false,
            peers: None,
            pages: Vec::new(),
            layers: None,
        };
        Self { inner: Arc::new(inner), remote: Remote::default(), activity: Arc::default() }
    }

    /// Serves these Hosts and Origins.
    #[must_use]
    pub fn guard(self, guard: Guard) -> Self {
        self.change(|inner| inner.guard = guard)
    }

    /// Speaks this dialect on WebSockets; a POST cannot be called back.
    #[must_use]
    pub fn dialect(self, dialect: &Dialect) -> Self {
        self.change(|inner| {
            if let Some(settings) = Arc::get_mut(&mut inner.dispatcher.settings) {
                settings.dialect = dialect.clone().unless_plain();
            }
        })
    }

    /// Serves a text by GET under this path, whatever path the service has. Hosts and Origins are
    /// checked there too; credentials are not.
    ///
    /// # Panics
    /// When the type cannot stand in a header.
    #[must_use]
    pub fn page(
        self,
        path: &str,
        content_type: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        self.change(|inner| inner.pages.push(Page::new(path, content_type, text)))
    }

    pub(crate) fn pages(self, pages: Vec<Page>) -> Self {
        self.change(|inner| inner.pages = pages)
    }

    pub(crate) fn in_layers(self, layers: Option<HttpServerService>) -> Self {
        self.change(|inner| inner.layers = layers)
    }

    /// Whether every request passes through layers, and so is hyper's.
    pub(super) fn is_layered(&self) -> bool {
        self.inner.layers.is_some()
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
    pub(crate) fn among(self, peers: ConnectionRegistry) -> Self {
        self.change(|inner| inner.peers = Some(peers))
    }

    /// The same service for one connection.
    pub(crate) fn for_one(&self, remote: Remote) -> Self {
        Self { inner: self.inner.clone(), remote, activity: Activity::watched() }
    }

    /// Called while the service is built and nobody shares it yet.
    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }
}

impl Inner {
    /// The answer to what is no message by POST.
    pub(super) fn without_body<B>(
        self: &Arc<Self>,
        request: &mut Request<B>,
        remote: &Remote,
    ) -> Option<HttpResponse> {
        let must_have_host = self.guard.names_hosts() || remote.is_connected();
        if let Err(reason) = guard::one_host(request, must_have_host) {
            return Some(answer::text(StatusCode::BAD_REQUEST, reason));
        }
        if let Err(reason) = self.guard.check(request.uri(), request.headers()) {
            return Some(answer::text(StatusCode::FORBIDDEN, reason));
        }
        if let Some(page) = self.page(request) {
            return Some(answer::page(page.content_type.clone(), (page.text)()));
        }
        if self.path.as_ref().is_some_and(|path| path != request.uri().path()) {
            let reason = "there is no endpoint at this path\n";
            return Some(answer::text(StatusCode::NOT_FOUND, reason));
        }
        #[cfg(feature = "ws")]
        if request.method() != Method::POST && super::upgrade::is_wanted(request.headers()) {
            return Some(super::upgrade::accept(request, self, remote));
        }
        if self.websocket_only {
            return Some(answer::upgrade_required());
        }
        if request.method() == Method::OPTIONS
            && let Some(headers) = self.guard.preflight(request.headers())
        {
            return Some(answer::with_headers(StatusCode::NO_CONTENT, headers));
        }
        if request.method() != Method::POST {
            return Some(answer::method_not_allowed());
        }
        (!answer::is_json(request.headers())).then(answer::unsupported_media_type)
    }

    /// The page that is asked for. A WebSocket begins with a GET too, and may begin anywhere.
    fn page<B>(&self, request: &Request<B>) -> Option<&Page> {
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        if !is_read || request.headers().contains_key(UPGRADE) {
            return None;
        }
        self.pages.iter().find(|page| page.path == request.uri().path())
    }

    /// Ready when a shutdown waits no longer.
    pub(super) fn expired(&self) -> impl Future<Output = ()> + Send + 'static {
        let expiring = self.peers.as_ref().map(ConnectionRegistry::expiring);
        async move {
            match expiring {
                Some(expiring) => expiring.cancelled_owned().await,
                None => std::future::pending().await,
            }
        }
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(Respond::new(self, request))
    }
}

/// The same service as hyper knows it, for our own listener.
pub(super) struct Direct(HttpService);

impl Direct {
    pub(super) fn new(service: HttpService) -> Self {
        Self(service)
    }
}

impl hyper::service::Service<Request<Incoming>> for Direct {
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let Self(service) = self;
        let Some(layers) = &service.inner.layers else {
            return Box::pin(Respond::new(service, request));
        };
        // A layer may answer by itself.
        let busy = service.activity.begin();
        let answered = layers.answer_by(service, request);
        Box::pin(async move {
            let _busy = busy;
            Ok(answered.await.unwrap_or_else(answer::failed))
        })
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("guard", &self.inner.guard).finish_non_exhaustive()
    }
}
