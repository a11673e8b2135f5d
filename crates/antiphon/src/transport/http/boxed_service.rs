//! A `tower` service of HTTP requests with its types erased: a fallback, or a layered service.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::http_body::HttpBody;
use super::response::HttpResponse;
use crate::BoxFuture;
use crate::layer::BoxError;

type BoxedCall =
    dyn Fn(Request<HttpBody>) -> BoxFuture<'static, Result<HttpResponse, BoxError>> + Send + Sync;

/// Any service of HTTP requests, with its types erased.
#[derive(Clone)]
pub(crate) struct BoxedService(Arc<BoxedCall>);

impl BoxedService {
    pub(crate) fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<HttpBody>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
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
                Ok(response.map(HttpBody::new))
            })
        }))
    }

    pub(crate) fn call(
        &self,
        request: Request<HttpBody>,
    ) -> BoxFuture<'static, Result<HttpResponse, BoxError>> {
        (self.0)(request)
    }
}
