//! Layers around one HTTP request of a client, whichever version it is sent by.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request, Response, Uri};
use tower_layer::Layer;
use tower_service::Service;

use super::error::ExchangeError;
use super::request::{RequestBuffer, merged};
use super::{HttpVersion, HttpWire, response};
use crate::BoxFuture;
use crate::call::CallError;
use crate::error::BoxError;

type ResponseFuture = BoxFuture<'static, Result<Response<Bytes>, CallError>>;

/// A layer that was put around each request.
pub(crate) type HttpClientLayer = Arc<dyn Fn(HttpClientService) -> HttpClientService + Send + Sync>;

/// Keeps a layer until there is something to put it around.
pub(crate) fn boxed_layer<L>(layer: L) -> HttpClientLayer
where
    L: Layer<HttpClientService, Service: HttpRequestService> + Send + Sync + 'static,
{
    Arc::new(move |inner| HttpClientService::through(layer.layer(inner)))
}

/// What the requests of a client go through, where there are layers.
pub(super) fn layered(
    layers: &[HttpClientLayer],
    wire: &Arc<HttpWire>,
) -> Option<HttpClientService> {
    let posting = |wire: Arc<HttpWire>| {
        HttpClientService(Arc::new(move |request| {
            let wire = wire.clone();
            Box::pin(async move { wire.exchange(request).await })
        }))
    };
    let (first, rest) = layers.split_first()?;
    Some(rest.iter().fold(first(posting(wire.clone())), |inner, layer| layer(inner)))
}

/// What may stand around the HTTP requests of a client: any service of this shape.
pub trait HttpRequestService:
    Service<
        Request<Bytes>,
        Response = Response<Bytes>,
        Error: Into<BoxError> + 'static,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> HttpRequestService for S where
    S: Service<
            Request<Bytes>,
            Response = Response<Bytes>,
            Error: Into<BoxError> + 'static,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// The HTTP requests of a client as a service: the innermost of all layers around them.
#[derive(Clone)]
pub struct HttpClientService(Arc<dyn Fn(Request<Bytes>) -> ResponseFuture + Send + Sync>);

impl HttpClientService {
    fn through(service: impl HttpRequestService) -> Self {
        Self(Arc::new(move |request| {
            let mut service = service.clone();
            Box::pin(async move {
                poll_fn(|poller| service.poll_ready(poller)).await.map_err(adopted)?;
                service.call(request).await.map_err(adopted)
            })
        }))
    }

    pub(super) fn post(&self, request: Request<Bytes>) -> ResponseFuture {
        (self.0)(request)
    }
}

fn adopted<E: Into<BoxError>>(error: E) -> CallError {
    error.into().downcast().map_or_else(CallError::Layer, |error| *error)
}

impl Service<Request<Bytes>> for HttpClientService {
    type Response = Response<Bytes>;
    type Error = CallError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> ResponseFuture {
        self.post(request)
    }
}

impl fmt::Debug for HttpClientService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClientService").finish_non_exhaustive()
    }
}

impl HttpWire {
    /// A request as layers see it: all that it will say.
    pub(super) fn request(&self, mut draft: RequestBuffer) -> Request<Bytes> {
        let own = draft.own.take().map(|own| merged(&self.headers, &own.headers));
        let headers = own.unwrap_or_else(|| self.headers.clone());
        let mut request = Request::new(draft.into_message());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        request
    }

    /// Sends a request that has passed all layers. They may change its path, its headers and its
    /// body; where it goes and that it is a POST they may not.
    async fn exchange(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, CallError> {
        *request.uri_mut() = self.uri_for(request.uri());
        let exchanged = match &self.version {
            HttpVersion::Http1(http) => http.post_whole(&request).await,
            HttpVersion::Http2(http) => {
                if !self.has_host {
                    // There it is a part of the address.
                    request.headers_mut().remove(HOST);
                }
                Box::pin(http.post_whole(request)).await
            }
            #[cfg(feature = "tls")]
            HttpVersion::Https(http) => Box::pin(http.post_whole(request, self.has_host)).await,
        };
        exchanged.map(whole).map_err(|fault: ExchangeError| fault.at(&self.uri))
    }

    fn uri_for(&self, asked: &Uri) -> Uri {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = asked.path_and_query().cloned().or(parts.path_and_query);
        Uri::from_parts(parts).unwrap_or_else(|_| self.uri.clone())
    }
}

/// A response as layers see it, in memory of its own.
pub(super) fn whole(mut response: response::Response) -> Response<Bytes> {
    let mut whole = Response::new(Bytes::copy_from_slice(&response.body));
    *whole.status_mut() = response.status;
    *whole.headers_mut() =
        response.headers.take().map_or_else(Default::default, |headers| *headers);
    whole
}
