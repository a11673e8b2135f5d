//! Layers around each HTTP request of a client, in every version of HTTP.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use bytes::{Bytes, BytesMut};
#[cfg(feature = "jwt")]
use http::header::AUTHORIZATION;
use http::header::HOST;
use http::{Method, Request, Response, Uri};
use http_body::Body;
use http_body_util::BodyExt as _;
use tower_layer::Layer;
use tower_service::Service;

use super::error::{ExchangeError, over_limit};
use super::request::{RequestBuffer, merged};
use super::{HttpVersion, HttpWire, response};
use crate::BoxFuture;
use crate::call::CallError;
use crate::error::BoxError;
#[cfg(feature = "jwt")]
use crate::layer::JwtSecret;
use crate::transport::http::http_body::HttpBody;

type ResponseFuture = BoxFuture<'static, Result<Response<HttpBody>, CallError>>;

/// A layer around each request, with its type erased.
pub(crate) type HttpClientLayer = Arc<dyn Fn(HttpClientService) -> HttpClientService + Send + Sync>;

/// Erases the type of a layer.
pub(crate) fn boxed_layer<L, B>(layer: L) -> HttpClientLayer
where
    L: Layer<HttpClientService> + Send + Sync + 'static,
    L::Service: Service<
            Request<HttpBody>,
            Response = Response<B>,
            Error: Into<BoxError> + 'static,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    Arc::new(move |inner| HttpClientService::through(layer.layer(inner)))
}

/// A layer that adds a new token to each request.
#[cfg(feature = "jwt")]
pub(crate) fn token_layer(secret: JwtSecret) -> HttpClientLayer {
    Arc::new(move |inner| {
        let secret = secret.clone();
        HttpClientService(Arc::new(move |mut request| {
            request.headers_mut().insert(AUTHORIZATION, secret.authorization());
            (inner.0)(request)
        }))
    })
}

/// Returns the service of all layers around the wire, if there are layers.
pub(super) fn layered(
    layers: &[HttpClientLayer],
    wire: &Arc<HttpWire>,
) -> Option<HttpClientService> {
    let innermost = |wire: Arc<HttpWire>| {
        HttpClientService(Arc::new(move |request| {
            let wire = wire.clone();
            Box::pin(async move { wire.exchange(request).await })
        }))
    };
    let (first, rest) = layers.split_first()?;
    Some(rest.iter().fold(first(innermost(wire.clone())), |inner, layer| layer(inner)))
}

/// The `tower` service that sends the HTTP requests of a client, inside all layers. It takes a request with
/// any body.
#[derive(Clone)]
pub struct HttpClientService(Arc<dyn Fn(Request<HttpBody>) -> ResponseFuture + Send + Sync>);

impl HttpClientService {
    fn through<S, B>(service: S) -> Self
    where
        S: Service<
                Request<HttpBody>,
                Response = Response<B>,
                Error: Into<BoxError> + 'static,
                Future: Send + 'static,
            > + Clone
            + Send
            + Sync
            + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self(Arc::new(move |request| {
            let mut service = service.clone();
            Box::pin(async move {
                poll_fn(|poller| service.poll_ready(poller)).await.map_err(call_error)?;
                let response = service.call(request).await.map_err(call_error)?;
                Ok(response.map(HttpBody::new))
            })
        }))
    }

    /// Sends a request through all layers. Reads at most `limit` bytes of the body of the response.
    pub(super) async fn post(
        &self,
        request: Request<Bytes>,
        limit: usize,
    ) -> Result<Response<Bytes>, CallError> {
        let (parts, body) = (self.0)(request.map(HttpBody::from)).await?.into_parts();
        Ok(Response::from_parts(parts, read(body, limit).await?))
    }
}

fn call_error<E: Into<BoxError>>(error: E) -> CallError {
    error.into().downcast().map_or_else(|error| CallError::Layer(error.into()), |error| *error)
}

/// Reads a body that a layer may have replaced, for example with its decompressed form.
async fn read(mut body: HttpBody, limit: usize) -> Result<Bytes, CallError> {
    let mut whole = BytesMut::new();
    loop {
        let frame = body.frame().await.transpose().map_err(call_error)?;
        let Some(frame) = frame else { return Ok(whole.freeze()) };
        let piece = frame.into_data().unwrap_or_default();
        if piece.len() > limit - whole.len() {
            return Err(over_limit(limit));
        }
        if body.is_end_stream() && whole.is_empty() {
            return Ok(piece);
        }
        whole.extend_from_slice(&piece);
    }
}

impl<B> Service<Request<B>> for HttpClientService
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<HttpBody>;
    type Error = CallError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        (self.0)(request.map(HttpBody::new))
    }
}

impl fmt::Debug for HttpClientService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClientService").finish_non_exhaustive()
    }
}

impl HttpWire {
    /// Returns the complete request, as layers see it.
    pub(super) fn request(&self, mut buffer: RequestBuffer) -> Request<Bytes> {
        let own = buffer.overrides.take().map(|own| merged(&self.headers, &own.headers));
        let headers = own.unwrap_or_else(|| self.headers.clone());
        let mut request = Request::new(buffer.into_message());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        request
    }

    /// Sends a request that has passed all layers. They may change its path, its headers and its body,
    /// but not its method and its server.
    async fn exchange(&self, request: Request<HttpBody>) -> Result<Response<HttpBody>, CallError> {
        let (parts, body) = request.into_parts();
        // Our own message, or what a layer has made of it.
        let body = body.collect().await.map_err(call_error)?.to_bytes();
        let mut request = Request::from_parts(parts, body);
        *request.uri_mut() = self.uri_for(request.uri());
        let exchanged = match &self.version {
            HttpVersion::Http1(http) => http.post_whole(&request).await,
            HttpVersion::Http2(http) => {
                if !self.has_host {
                    // HTTP/2 has the host in the address.
                    request.headers_mut().remove(HOST);
                }
                Box::pin(http.post_whole(request)).await
            }
            #[cfg(feature = "tls")]
            HttpVersion::Https(http) => Box::pin(http.post_whole(request, self.has_host)).await,
        };
        exchanged
            .map(|response| whole(response).map(HttpBody::from))
            .map_err(|fault: ExchangeError| fault.at(&self.uri))
    }

    fn uri_for(&self, asked: &Uri) -> Uri {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = asked.path_and_query().cloned().or(parts.path_and_query);
        Uri::from_parts(parts).unwrap_or_else(|_| self.uri.clone())
    }
}

/// Returns the response as layers see it, in memory of its own.
pub(super) fn whole(mut response: response::ReceivedResponse) -> Response<Bytes> {
    let mut whole = Response::new(Bytes::copy_from_slice(&response.body));
    *whole.status_mut() = response.status;
    *whole.headers_mut() =
        response.headers.take().map_or_else(Default::default, |headers| *headers);
    whole
}
