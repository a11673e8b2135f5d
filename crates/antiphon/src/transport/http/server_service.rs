//! Layers around the HTTP requests of a server.

use std::fmt;
use std::task::{Context as Poller, Poll};

use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::boxed_service::BoxedService;
use super::guard::Guard;
use super::http_body::HttpBody;
use super::policy_exchange::FailedResponse;
use super::request_body;
use super::request_future::{RequestExchange, RequestFuture};
use super::response::HttpResponse;
use super::service::HttpService;
use crate::BoxFuture;
use crate::error::BoxError;

/// The HTTP requests of a server as a `tower` service: the innermost service of all layers around
/// them. It takes a request with any body.
#[derive(Clone)]
pub struct HttpServerService(BoxedService);

/// The service of the connection that a request came by. It travels in the extensions of the request,
/// because layers are built once, for all connections.
#[derive(Clone)]
struct ConnectionService(HttpService);

/// The guard of the server that a request came to.
pub(super) fn connection_guard(extensions: &Extensions) -> Option<&Guard> {
    let ConnectionService(service) = extensions.get()?;
    Some(&service.state.http.guard)
}

const LOST: &str = "a layer has dropped the extensions of the request; it must pass them on";

impl HttpServerService {
    /// One more layer, around the others or the innermost service.
    pub(crate) fn in_layer<L, B>(layers: Option<Self>, layer: &L) -> Self
    where
        L: Layer<Self>,
        L::Service: Service<Request<HttpBody>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let inner = layers.unwrap_or_else(|| Self(BoxedService::new(Innermost)));
        Self(BoxedService::new(layer.layer(inner)))
    }

    /// The response to a request of a connection.
    pub(super) fn respond<B>(
        &self,
        service: &HttpService,
        mut request: Request<B>,
    ) -> impl Future<Output = HttpResponse> + Send + use<B>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let failed = FailedResponse::new(&RequestExchange::new(service), &request);
        request.extensions_mut().insert(ConnectionService(service.clone()));
        let watch = service.activity.watch(request.version());
        let limits = &service.state.dispatcher.settings.limits;
        let request = request.map(|body| request_body::timed(body, limits, watch));
        let responding = self.0.call(request);
        async move {
            responding.await.unwrap_or_else(|error| {
                // The reason is for the log only.
                tracing::warn!(%error, "a layer failed an HTTP request");
                failed.into_response()
            })
        }
    }
}

/// Passes a request to the service of its connection.
#[derive(Clone)]
struct Innermost;

impl Service<Request<HttpBody>> for Innermost {
    type Response = HttpResponse;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<HttpResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<HttpBody>) -> Self::Future {
        Box::pin(async move {
            let Some(ConnectionService(service)) = request.extensions_mut().remove() else {
                return Err(LOST.into());
            };
            RequestFuture::behind_layers(&service, request).await.map_err(|never| match never {})
        })
    }
}

impl<B> Service<Request<B>> for HttpServerService
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<HttpBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<HttpResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.0.call(request.map(HttpBody::new))
    }
}

impl fmt::Debug for HttpServerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServerService").finish_non_exhaustive()
    }
}
