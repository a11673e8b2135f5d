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

use super::service::HttpService;
use crate::BoxFuture;
use crate::layer::BoxError;

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
pub struct Answering(Arc<dyn Fn(Request<Incoming>) -> Answered + Send + Sync>);

impl Answering {
    pub(super) fn new(service: HttpService) -> Self {
        Self::through(service)
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

    pub(super) fn answer(&self, request: Request<Incoming>) -> Answered {
        (self.0)(request)
    }
}

impl Service<Request<Incoming>> for Answering {
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

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}

/// A layer that was put around each request.
pub(crate) type Layering = Arc<dyn Fn(Answering) -> Answering + Send + Sync>;

/// Keeps a layer until there is something to put it around.
pub(crate) fn layering<L, B>(layer: L) -> Layering
where
    L: Layer<Answering> + Send + Sync + 'static,
    L::Service: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    Arc::new(move |inner| Answering::through(layer.layer(inner)))
}
