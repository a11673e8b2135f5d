//! The settings of a server that only HTTP has.

use std::sync::Arc;

use super::Server;
use crate::layer::BoxError;
use crate::transport::http::{
    BoxedService, Guard, HttpBody, HttpPolicy, HttpServerService, TextPage,
};

impl Server {
    /// Sets which Hosts and Origins HTTP serves. On a loopback address, foreign Hosts are always
    /// refused unless they are allowed here.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.http.guard = guard;
        self
    }

    /// Serves a text by GET under this path of every HTTP endpoint, such as the result of
    /// [`Metrics::render`](crate::layer::Metrics::render). It requires no credentials.
    ///
    /// # Panics
    /// Panics if the content type is not a valid header value.
    pub fn page(
        mut self,
        path: &str,
        content_type: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        self.http.pages.push(TextPage::new(path, content_type, text));
        self
    }

    /// Decides statuses, headers and bodies over HTTP by this policy. hyper serves every request then,
    /// which is slower.
    pub fn http_policy(mut self, policy: impl HttpPolicy) -> Self {
        self.http.policy = Some(Arc::new(policy));
        self
    }

    /// Passes the requests that are not for the JSON-RPC service to another `tower` service: those to
    /// other paths than the endpoint's, and GET and HEAD without an upgrade to its own, unless the
    /// policy responds. Files, a console or `axum::Router` can share the port this way.
    ///
    /// Host and Origin are checked first. JSON-RPC stays on the fast path.
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

    /// Puts a `tower` layer around each HTTP request, those that become WebSockets included. The
    /// layers of `tower-http` fit: a layer may replace the body of the request and of the response.
    ///
    /// The layer added last is the outermost. Each layer is built once, so that a limit holds for all
    /// connections of the server. A layer must pass on the extensions of a request. hyper serves every
    /// request then, which is slower.
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
