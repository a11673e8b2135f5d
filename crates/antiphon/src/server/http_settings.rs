//! The settings of a server that only HTTP has.

use std::sync::Arc;

use super::Server;
use crate::layer::BoxError;
use crate::transport::http::{
    BoxedService, Guard, HttpBody, HttpPolicy, HttpServerService, TextPage,
};

impl Server {
    /// Sets the accepted `Host` and `Origin` headers. A server on a loopback address accepts only loopback
    /// hosts and the hosts allowed here.
    ///
    /// ```
    /// use antiphon::Server;
    /// use antiphon::transport::http::Guard;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = Guard::new()
    ///     .allowed_hosts_only()
    ///     .allow_host("rpc.example")
    ///     .allow_origin("https://app.example");
    /// let server = Server::bind("http://127.0.0.1:0").await?.guard(guard);
    /// # Ok(()) }
    /// ```
    pub fn guard(mut self, guard: Guard) -> Self {
        self.http.guard = guard;
        self
    }

    /// Serves a text over GET and HEAD under this path of every HTTP endpoint, such as the result of
    /// [`Metrics::render`](crate::layer::Metrics::render). It requires no credentials.
    ///
    /// The closure runs for each request on the thread of the connection, so it must not block.
    ///
    /// # Panics
    /// Panics if the content type is not a valid header value.
    ///
    /// # Examples
    /// ```
    /// use antiphon::layer::Metrics;
    /// use antiphon::{Context, Handler, Router, Server};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    /// let metrics = Metrics::new(router.names());
    /// let service = router.layer(metrics.clone());
    /// let server = Server::bind("http://127.0.0.1:0")
    ///     .await?
    ///     .page("/metrics", Metrics::CONTENT_TYPE, move || metrics.render());
    /// # drop((server, service));
    /// # Ok(()) }
    /// ```
    pub fn page(
        mut self,
        path: &str,
        content_type: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        self.http.pages.push(TextPage::new(path, content_type, text));
        self
    }

    /// Sets the policy for status, headers and body of each HTTP response. A second call replaces it. With a
    /// policy, the fast path serves only plain requests that have arrived whole. Other requests are slower.
    ///
    /// ```
    /// use antiphon::http::{HeaderValue, Response};
    /// use antiphon::transport::http::{HttpBody, HttpMessage, HttpOutcome, HttpPolicy};
    /// use antiphon::{Connection, Server};
    ///
    /// /// Forbids caches to store responses.
    /// struct NoStore;
    ///
    /// impl HttpPolicy for NoStore {
    ///     fn respond(
    ///         &self,
    ///         _request: &Connection,
    ///         _message: &HttpMessage,
    ///         outcome: HttpOutcome,
    ///     ) -> Response<HttpBody> {
    ///         let mut response = outcome.into_response();
    ///         response.headers_mut().insert("cache-control", HeaderValue::from_static("no-store"));
    ///         response
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::bind("http://127.0.0.1:0").await?.http_policy(NoStore);
    /// # Ok(()) }
    /// ```
    pub fn http_policy(mut self, policy: impl HttpPolicy) -> Self {
        self.http.policy = Some(Arc::new(policy));
        self
    }

    /// Passes HTTP requests that are not JSON-RPC to another `tower` service: all requests to other paths,
    /// and GET and HEAD to the endpoint's path that are not upgrades. A policy sees requests to the
    /// endpoint's path first. A second call replaces the service.
    ///
    /// Host and Origin are checked first. JSON-RPC stays on the fast path. If the service fails, the
    /// response has status 500.
    ///
    /// ```no_run
    /// use antiphon::{Context, Router, Server};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rpc = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    /// let web = axum::Router::new().route("/health", axum::routing::get(|| async { "ok" }));
    /// Server::bind("http://127.0.0.1:8650/rpc").await?.fallback(web).serve(rpc).await?;
    /// # Ok(()) }
    /// ```
    pub fn fallback<S, B>(mut self, fallback: S) -> Self
    where
        S: tower_service::Service<
                http::Request<HttpBody>,
                Response = http::Response<B>,
                Error: Into<BoxError>,
                Future: Send,
            > + Clone
            + Send
            + Sync
            + 'static,
        B: http_body::Body<Data = bytes::Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.http.fallback = Some(BoxedService::new(fallback));
        self
    }

    /// Wraps each HTTP request in a `tower` layer, including requests that become WebSockets. The layers of
    /// `tower-http` work: a layer may replace the body of the request and of the response.
    ///
    /// The layer that is added last is the outermost. Each layer is built once, so that a limit holds for
    /// all connections of the server. A layer must keep the request's extensions. With a layer, hyper
    /// serves every request, which is slower than the fast path.
    ///
    /// ```
    /// use antiphon::Server;
    /// use tower_http::compression::CompressionLayer;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::bind("http://127.0.0.1:0").await?.http_layer(CompressionLayer::new());
    /// # Ok(()) }
    /// ```
    ///
    /// # CORS
    /// The [`Guard`] inside the layers checks the Origin itself, and refuses a foreign one with status 403. So
    /// a `CorsLayer` also needs [`Guard::allow_origin`]. Without a `CorsLayer`, the guard sends the CORS
    /// headers. A layer that responds by itself can ask the guard first: [`Guard::of_request`].
    ///
    /// # Errors of layers
    /// An error of a layer becomes status 500. axum's `HandleErrorLayer` maps it to another response:
    ///
    /// ```
    /// use antiphon::Server;
    /// use antiphon::http::StatusCode;
    /// use antiphon::layer::BoxError;
    /// use axum::error_handling::HandleErrorLayer;
    /// use std::time::Duration;
    /// use tower::ServiceBuilder;
    /// use tower::timeout::TimeoutLayer;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let layers = ServiceBuilder::new()
    ///     .layer(HandleErrorLayer::new(|_error: BoxError| async { StatusCode::GATEWAY_TIMEOUT }))
    ///     .layer(TimeoutLayer::new(Duration::from_secs(5)));
    /// let server = Server::bind("http://127.0.0.1:0").await?.http_layer(layers);
    /// # Ok(()) }
    /// ```
    pub fn http_layer<L, B>(mut self, layer: L) -> Self
    where
        L: tower_layer::Layer<HttpServerService> + Send + Sync + 'static,
        L::Service: tower_service::Service<
                http::Request<HttpBody>,
                Response = http::Response<B>,
                Error: Into<BoxError>,
                Future: Send,
            > + Clone
            + Send
            + Sync
            + 'static,
        B: http_body::Body<Data = bytes::Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let layers = self.http.layers.take();
        self.http.layers = Some(HttpServerService::in_layer(layers, &layer));
        self
    }
}
