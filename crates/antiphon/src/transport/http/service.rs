//! The serving side, as a `tower` service.
//!
//! A handler runs inside the future of its request (`request_future.rs`). When the client goes away,
//! hyper drops that future, and that cancels the handler.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::Limits;
use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower_service::Service;

use super::activity::RequestActivity;
use super::boxed_service::BoxedService;
use super::guard::Guard;
use super::http_body::HttpBody;
use super::policy::HttpPolicy;
use super::refusal::HttpRefusal;
use super::remote::Remote;
use super::request_future::RequestFuture;
use super::response::{self, HttpResponse};
use super::rules::RuleHeaders;
use super::settings::{HttpSettings, TextPage};
use crate::BoxFuture;
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::engine::{Dispatcher, Settings};
use crate::layer::BoxError;
use crate::peer::ConnectionRegistry;
use crate::service::Handler;

/// Serves JSON-RPC over POST, and over WebSocket with the feature `ws`.
///
/// It is a `tower::Service`: mount it in an axum application with `route_service`. It does not know its
/// own address: if the application listens on a loopback address, set [`Guard::loopback_only`]. A
/// [`Server`](crate::Server) on a loopback address does so by default.
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
///
/// # Shutdown
/// The graceful shutdown of the application does not include WebSockets: once upgraded, a connection
/// belongs to the service. [`shutdown`](Self::shutdown) ends them.
///
/// # Remote addresses
/// The application accepts the connections, so the service does not see their addresses. With the
/// feature `axum`, it takes the address from axum's `ConnectInfo<SocketAddr>`, which
/// `into_make_service_with_connect_info` adds to each request. In any other application,
/// [`on_connect`](Self::on_connect) sets [`Connection::remote`].
///
/// Without an address, all POST requests that have no identity look alike:
/// [`RateLimit`](crate::layer::RateLimit) counts them as one caller.
///
/// Clones share the shutdown. A setting applies to the clone that it is called on.
#[derive(Clone)]
pub struct HttpService {
    pub(super) state: Arc<ServiceState>,
    pub(super) remote: Remote,
    pub(super) activity: Arc<RequestActivity>,
}

/// The parts of a service that all its connections share.
#[derive(Clone)]
pub(super) struct ServiceState {
    pub(super) dispatcher: Dispatcher,
    pub(super) http: HttpSettings,
    /// The only path of the service; `None` for every path.
    pub(super) path: Option<String>,
    pub(super) websocket_only: bool,
    /// The registry that ends WebSockets at shutdown.
    pub(super) peers: Option<ConnectionRegistry>,
    /// Another server accepts the connections, so a shutdown must wait for requests too.
    is_mounted: bool,
}

/// The part of the service that takes a request, by its head.
pub(super) enum Route {
    /// A response that needs no body.
    Respond(Box<HttpResponse>),
    Refuse(HttpRefusal),
    /// The request is not for the service.
    Fallback,
    /// The body may be a message.
    Message,
}

impl HttpService {
    /// Creates a service with default limits.
    pub fn new(handler: impl Handler) -> Self {
        Self::with_limits(handler, Limits::default())
    }

    /// Creates a service with these limits. The application limits the connections, so
    /// [`Limits::connections`] has no effect.
    pub fn with_limits(handler: impl Handler, limits: Limits) -> Self {
        // The server around this service limits the connections.
        let peers = ConnectionRegistry::new(usize::MAX);
        let settings = Arc::new(Settings::new(limits));
        Self::build(Arc::new(handler), settings, HttpSettings::default())
            .among(peers)
            .change(|state| state.is_mounted = true)
    }

    pub(crate) fn build(
        handler: Arc<dyn Handler>,
        settings: Arc<Settings>,
        http: HttpSettings,
    ) -> Self {
        let state = ServiceState {
            dispatcher: Dispatcher { handler, settings },
            http,
            path: None,
            websocket_only: false,
            peers: None,
            is_mounted: false,
        };
        Self { state: Arc::new(state), remote: Remote::default(), activity: Arc::default() }
    }

    /// Sets the accepted `Host` and `Origin` headers.
    #[must_use]
    pub fn guard(self, guard: Guard) -> Self {
        self.change(|state| state.http.guard = guard)
    }

    /// Sets the dialect of WebSockets and event streams. A plain POST has no way back to the client, so
    /// the dialect only decides whether `"params": null` is accepted in it.
    #[must_use]
    pub fn dialect(self, dialect: &Dialect) -> Self {
        self.change(|state| {
            let settings = Arc::make_mut(&mut state.dispatcher.settings);
            *settings = settings.clone().in_dialect(dialect.clone(), None);
        })
    }

    /// Runs a closure for each WebSocket and each request before it is served, as
    /// [`Server::on_connect`](crate::Server::on_connect) does. It can set the remote address and attach
    /// extensions. It must not block. A second call replaces the closure.
    ///
    /// ```
    /// use std::net::SocketAddr;
    /// use antiphon::{Router, transport::http::HttpService};
    ///
    /// // A reverse proxy in front of this application sets the header.
    /// let service = HttpService::new(Router::new()).on_connect(|connection| {
    ///     let address = connection.headers().get("x-client-address");
    ///     let address = address.and_then(|value| value.to_str().ok()?.parse::<SocketAddr>().ok());
    ///     connection.remote = address;
    /// });
    /// ```
    #[must_use]
    pub fn on_connect(self, complete: impl Fn(&mut Connection) + Send + Sync + 'static) -> Self {
        self.change(|state| {
            let settings = Arc::make_mut(&mut state.dispatcher.settings);
            settings.on_connect = Some(Arc::new(complete));
        })
    }

    /// Ends the service, and returns when it has ended: refuses new requests with status 503, waits for
    /// running calls up to [`Limits::shutdown_timeout`], cancels the rest and closes the WebSockets. Its
    /// responses ask HTTP/1.1 clients to close their connections.
    ///
    /// Await it in the signal of the application's graceful shutdown:
    ///
    /// ```no_run
    /// use antiphon::{Router, transport::http::HttpService};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let rpc = HttpService::new(Router::new());
    /// let app: axum::Router = axum::Router::new().route_service("/rpc", rpc.clone());
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let stop = async move {
    ///     let _ = tokio::signal::ctrl_c().await;
    ///     rpc.shutdown().await;
    /// };
    /// axum::serve(listener, app).with_graceful_shutdown(stop).await
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// If the future is dropped, the service still refuses new requests, and its WebSockets still end after
    /// at most [`Limits::shutdown_timeout`]. Running HTTP requests are then not cancelled.
    pub async fn shutdown(&self) {
        if let Some(peers) = &self.state.peers {
            peers.shutdown(self.state.dispatcher.settings.limits.shutdown_timeout).await;
        }
    }

    /// Serves a text over GET and HEAD under this path. Hosts and Origins are checked there too;
    /// credentials are not. The closure runs for each request, and must not block.
    ///
    /// # Panics
    /// Panics if the content type is not a valid header value.
    #[must_use]
    pub fn page(
        self,
        path: &str,
        content_type: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        self.change(|state| state.http.pages.push(TextPage::new(path, content_type, text)))
    }

    /// Sets the policy for status, headers and body of each HTTP response. A second call replaces it.
    #[must_use]
    pub fn policy(self, policy: impl HttpPolicy) -> Self {
        self.change(|state| state.http.policy = Some(Arc::new(policy)))
    }

    /// Passes requests that are not for the service to `fallback`: other paths than `/`, and GET and
    /// HEAD without an upgrade, unless the policy responds. The Guard is checked first.
    #[must_use]
    pub fn fallback<S, B>(self, fallback: S) -> Self
    where
        S: Service<Request<HttpBody>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.change(|state| state.http.fallback = Some(BoxedService::new(fallback)))
    }

    /// Whether hyper must serve every request, because layers or a policy see them.
    pub(super) fn needs_hyper(&self) -> bool {
        self.state.http.layers.is_some() || self.state.http.policy.is_some()
    }

    /// Serves this path only.
    pub(crate) fn at_path(self, path: &str) -> Self {
        let path = (path != "/").then(|| path.to_owned());
        self.change(|state| state.path = path)
    }

    pub(crate) fn websocket_only(self) -> Self {
        self.change(|state| state.websocket_only = true)
    }

    /// Registers the WebSockets of this service, so that they end with the others.
    pub(crate) fn among(self, peers: ConnectionRegistry) -> Self {
        self.change(|state| state.peers = Some(peers))
    }

    /// The service for one connection.
    pub(crate) fn for_one(&self, remote: Remote) -> Self {
        Self { state: self.state.clone(), remote, activity: RequestActivity::watched() }
    }

    /// Changes a service that is being built. Clones keep their settings, and share the shutdown.
    fn change(mut self, change: impl FnOnce(&mut ServiceState)) -> Self {
        change(Arc::make_mut(&mut self.state));
        self
    }
}

impl ServiceState {
    /// Checks Host, Origin and path.
    #[inline]
    pub(super) fn route<B>(
        &self,
        request: &Request<B>,
        headers: &RuleHeaders<'_>,
        remote: &Remote,
    ) -> Route {
        if self.mounted().is_some_and(ConnectionRegistry::is_stopping) {
            return Route::Refuse(HttpRefusal::ShuttingDown);
        }
        let is_required = self.http.guard.names_hosts() || remote.is_connected();
        if let Err(refusal) = headers
            .one_host(request.version(), is_required)
            .and_then(|()| self.http.guard.check(request.uri(), headers))
        {
            return Route::Refuse(refusal);
        }
        if let Some(page) = self.page(request) {
            let page = response::page(page.content_type.clone(), (page.text)());
            return Route::Respond(Box::new(page));
        }
        match self.serves_path(request.uri().path()) {
            true => Route::Message,
            false if self.http.fallback.is_some() => Route::Fallback,
            false => Route::Refuse(HttpRefusal::NotFound),
        }
    }

    /// The registry of a service that another server serves.
    #[inline]
    fn mounted(&self) -> Option<&ConnectionRegistry> {
        self.peers.as_ref().filter(|_| self.is_mounted)
    }

    /// Admits a message before its handler starts. The shutdown of a mounted service waits until the token
    /// is dropped, and admits nothing once it has begun.
    #[inline]
    pub(super) fn admit(&self) -> Result<Option<TaskTrackerToken>, HttpRefusal> {
        match self.mounted() {
            None => Ok(None),
            Some(peers) => peers.try_hold().map(Some).ok_or(HttpRefusal::ShuttingDown),
        }
    }

    /// Asks the client to close its connection once the shutdown of a mounted service has begun: it would
    /// send its next requests by it too. The server of a service that is not mounted does so by itself.
    /// HTTP/2 forbids the header (RFC 9113, section 8.2.2).
    #[inline]
    pub(super) fn close_if_stopping(&self, version: Version, response: &mut HttpResponse) {
        if self.mounted().is_some_and(ConnectionRegistry::is_stopping)
            && version <= Version::HTTP_11
            && response.status() != StatusCode::SWITCHING_PROTOCOLS
        {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }

    /// The headers that allow a page of an allowed origin to read the response, by the route of the
    /// request. Text pages and the fallback get none, and a preflight has its own.
    #[inline]
    pub(super) fn cors(&self, route: &Route, request: &HeaderMap) -> Option<HeaderMap> {
        let is_readable = match route {
            Route::Message => true,
            // A page that may call may also read why it was refused.
            Route::Refuse(HttpRefusal::Forbidden(_)) | Route::Respond(_) | Route::Fallback => false,
            Route::Refuse(refusal) => refusal.status().is_client_error(),
        };
        if is_readable { self.http.guard.cors(request) } else { None }
    }

    /// Accepts a WebSocket if the request asks for one.
    #[cfg_attr(
        not(feature = "ws"),
        expect(unused_variables, reason = "without WebSockets, there is nothing to accept")
    )]
    pub(super) fn upgrade<B>(self: &Arc<Self>, request: &mut Request<B>, remote: &Remote) -> Route {
        #[cfg(feature = "ws")]
        if request.method() != Method::POST && super::upgrade::is_wanted(request.headers()) {
            return super::upgrade::accept(request, self, remote)
                .map_or_else(Route::Refuse, |response| Route::Respond(Box::new(response)));
        }
        match self.websocket_only {
            true if self.http.fallback.is_some() => Route::Fallback,
            true => Route::Refuse(HttpRefusal::UpgradeRequired),
            false => Route::Message,
        }
    }

    /// Checks the method and content type of a message.
    #[inline]
    pub(super) fn check_message(
        &self,
        method: &Method,
        headers: &HeaderMap,
        is_json: bool,
    ) -> Route {
        if method == Method::OPTIONS
            && let Some(headers) = self.http.guard.preflight(headers)
        {
            let response = response::with_headers(StatusCode::NO_CONTENT, headers);
            return Route::Respond(Box::new(response));
        }
        if method != Method::POST {
            let is_read = [Method::GET, Method::HEAD].contains(method);
            return match self.http.fallback {
                Some(_) if is_read => Route::Fallback,
                _ => Route::Refuse(HttpRefusal::MethodNotAllowed),
            };
        }
        match is_json {
            true => Route::Message,
            false => Route::Refuse(HttpRefusal::UnsupportedMediaType),
        }
    }

    /// Whether this path is the service's. A fallback takes all others, and without one a service
    /// without a path takes all.
    pub(super) fn serves_path(&self, path: &str) -> bool {
        match &self.path {
            Some(own) => own == path,
            None => self.http.fallback.is_none() || path == "/",
        }
    }

    /// The page at the path of the request. A WebSocket begins with a GET too, and may begin anywhere.
    fn page<B>(&self, request: &Request<B>) -> Option<&TextPage> {
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        if !is_read || request.headers().contains_key(UPGRADE) {
            return None;
        }
        self.http.pages.iter().find(|page| page.path == request.uri().path())
    }

    /// Ready when the shutdown timeout has passed.
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

impl<B> Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(RequestFuture::new(self, request))
    }
}

/// The service as hyper calls it, for the listeners of a [`Server`](crate::Server).
pub(super) struct HyperService(HttpService);

impl HyperService {
    pub(super) fn new(service: HttpService) -> Self {
        Self(service)
    }
}

impl hyper::service::Service<Request<Incoming>> for HyperService {
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let Self(service) = self;
        match &service.state.http.layers {
            None => Box::pin(RequestFuture::new(service, request)),
            Some(layers) => {
                // A layer may respond by itself, so the request is active from here on.
                let active = service.activity.begin();
                let responding = layers.respond(service, request);
                Box::pin(async move {
                    let mut response = responding.await;
                    response.body_mut().hold_active(active);
                    Ok(response)
                })
            }
        }
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("guard", &self.state.http.guard).finish_non_exhaustive()
    }
}
