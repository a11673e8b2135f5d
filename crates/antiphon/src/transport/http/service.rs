//! The serving side, as a `tower` service.
//!
//! A handler runs inside the future of its request (`request_future.rs`). When the client goes away,
//! hyper drops that future, and that cancels the handler.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::Limits;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tower_service::Service;

use super::activity::RequestActivity;
use super::boxed_service::BoxedService;
use super::guard::Guard;
use super::http_body::HttpBody;
use super::policy::HttpPolicy;
use super::remote::Remote;
use super::request_future::RequestFuture;
use super::response::HttpResponse;
use super::service_state::ServiceState;
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

    /// Sets the dialect. A plain POST has no way back to the client, so cancellation, progress and order apply
    /// only to WebSockets and event streams. The [limits](Dialect::limits) of the dialect do not apply: use
    /// [`with_limits`](Self::with_limits).
    #[must_use]
    pub fn dialect(self, dialect: &Dialect) -> Self {
        self.change(|state| {
            let settings = Arc::make_mut(&mut state.dispatcher.settings);
            *settings = settings.clone().in_dialect(dialect.clone(), None);
            state.http = std::mem::take(&mut state.http).in_dialect(dialect);
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

    /// Whether hyper must serve every request, because layers see them.
    pub(super) fn needs_hyper(&self) -> bool {
        self.state.http.layers.is_some()
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
