//! A service called as hyper calls it. The figures of all engines include creating the request and
//! reading the body; the engine `http` measures these alone.

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::Service;

use crate::Meter;
use crate::case::Case;

pub(crate) async fn run<S, B>(meter: &Meter, case: &Case, mut service: S)
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error: Debug>,
    B: http_body::Body<Error: Debug>,
{
    let call = async || {
        let mut request = Request::post("/").body(Full::new(case.request.clone())).expect("valid");
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        let response = service.call(request).await.expect("a response");
        case.check(&response.into_body().collect().await.expect("a body").to_bytes());
    };
    meter.run(call).await;
}

/// A constant reply.
pub(crate) struct Constant(pub(crate) Bytes);

impl Service<Request<Full<Bytes>>> for Constant {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
        ready(Ok(Response::new(Full::new(self.0.clone()))))
    }
}
