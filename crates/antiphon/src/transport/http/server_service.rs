//! Layers around one HTTP request of a server, and the body that they may put in place of ours.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tower_layer::Layer;
use tower_service::Service;

use super::respond::Respond;
use super::service::HttpService;
use crate::BoxFuture;
use crate::error::BoxError;

/// The body of a response: in one piece, or whatever a layer has made of it.
pub struct HttpBody(Kind);

enum Kind {
    Whole(Full<Bytes>),
    Other(UnsyncBoxBody<Bytes, BoxError>),
}

impl HttpBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(Full::new(bytes)))
    }

    fn other<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self(Kind::Other(body.map_err(Into::into).boxed_unsync()))
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Whole(body) => Pin::new(body).poll_frame(poller).map_err(|never| match never {}),
            Kind::Other(body) => Pin::new(body).poll_frame(poller),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(body) => body.is_end_stream(),
            Kind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(body) => body.size_hint(),
            Kind::Other(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody").finish_non_exhaustive()
    }
}

type Answered = BoxFuture<'static, Result<Response<HttpBody>, BoxError>>;

/// The HTTP requests of a server as a service: the innermost of all layers around them.
#[derive(Clone)]
pub struct HttpServerService(Arc<dyn Fn(Request<Incoming>) -> Answered + Send + Sync>);

/// The service of the connection that a request came by. It travels with the request: the layers are
/// put up once, for all connections.
#[derive(Clone)]
struct Carried(HttpService);

const LOST: &str = "a layer has dropped the extensions of the request; it must pass them on";

impl HttpServerService {
    /// The innermost of all layers: what a request carries answers it.
    fn carried() -> Self {
        Self(Arc::new(|mut request: Request<Incoming>| {
            Box::pin(async move {
                let Some(Carried(service)) = request.extensions_mut().remove() else {
                    return Err(LOST.into());
                };
                Respond::new(&service, request).await.map_err(|never| match never {})
            })
        }))
    }

    /// One more layer, around these or the innermost.
    pub(crate) fn in_layer<L, B>(layers: Option<Self>, layer: &L) -> Self
    where
        L: Layer<Self>,
        L::Service: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self::through(layer.layer(layers.unwrap_or_else(Self::carried)))
    }

    /// The answer to a request that came by the connection of this service.
    pub(super) fn answer_by(
        &self,
        service: &HttpService,
        mut request: Request<Incoming>,
    ) -> Answered {
        request.extensions_mut().insert(Carried(service.clone()));
        self.answer(request)
    }

    fn through<S, B>(service: S) -> Self
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self(Arc::new(move |request| {
            let mut service = service.clone();
            Box::pin(async move {
                poll_fn(|poller| service.poll_ready(poller)).await.map_err(Into::into)?;
                let response = service.call(request).await.map_err(Into::into)?;
                Ok(response.map(HttpBody::other))
            })
        }))
    }

    fn answer(&self, request: Request<Incoming>) -> Answered {
        (self.0)(request)
    }
}

impl Service<Request<Incoming>> for HttpServerService {
    type Response = Response<HttpBody>;
    type Error = BoxError;
    type Future = Answered;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Answered {
        self.answer(request)
    }
}

impl fmt::Debug for HttpServerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServerService").finish_non_exhaustive()
    }
}
