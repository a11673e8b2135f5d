//! The settings of a server that only HTTP has.

use super::Server;
use crate::transport;

impl Server {
    /// Which Hosts and Origins HTTP serves. On a loopback address, foreign Hosts are always refused
    /// unless they are allowed here.
    pub fn guard(mut self, guard: transport::http::Guard) -> Self {
        self.guard = guard;
        self
    }

    /// Serves a text by GET under this path of every HTTP endpoint, such as what
    /// [`Metrics::render`](crate::layer::Metrics::render) gives. Credentials are not asked for.
    ///
    /// # Panics
    /// When the type cannot stand in a header.
    pub fn page(
        mut self,
        path: &str,
        content_type: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        self.pages.push(transport::http::service::Page::new(path, content_type, text));
        self
    }

    /// Puts a `tower` layer around each HTTP request, those that become WebSockets too: a request of
    /// `http::Request<Incoming>`, answered by an `http::Response` of any body. The layer added last is
    /// the outermost, and each is put up once: what it limits, it limits for all connections of the
    /// server. It must pass on the extensions of a request. Every request is hyper's then, which is
    /// slower.
    pub fn http_layer<L, B>(mut self, layer: L) -> Self
    where
        L: tower_layer::Layer<transport::http::HttpServerService> + Send + Sync + 'static,
        L::Service: tower_service::Service<
                http::Request<hyper::body::Incoming>,
                Response = http::Response<B>,
                Error: Into<crate::error::BoxError>,
                Future: Send,
            > + Clone
            + Send
            + Sync
            + 'static,
        B: http_body::Body<Data = bytes::Bytes, Error: Into<crate::error::BoxError>>
            + Send
            + 'static,
    {
        let layers = self.http_layers.take();
        self.http_layers = Some(transport::http::HttpServerService::in_layer(layers, &layer));
        self
    }
}
