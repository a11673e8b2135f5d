//! Exchanges by HTTP/2, all on one connection: hyper's client.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::fault::Fault;
use super::response::Response;

pub(super) struct Http2 {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
    headers: HeaderMap,
    limit: usize,
}

impl Http2 {
    pub(super) fn new(
        connector: HttpConnector,
        uri: Uri,
        headers: &HeaderMap,
        limit: usize,
    ) -> Self {
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build(connector);
        Self { client, uri, headers: headers.clone(), limit }
    }

    pub(super) async fn post(&self, message: Bytes) -> Result<Response, Fault> {
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.extend(self.headers.clone());
        let response = self.client.request(request).await.map_err(|error| {
            let cause = Fault::root(&error);
            if error.is_connect() { Fault::Unreachable(cause) } else { Fault::Failed(cause) }
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), self.limit).collect().await;
        let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => Fault::TooLarge(self.limit),
            None => Fault::BrokeOff(error.to_string().into()),
        })?;
        Ok(Response::new(status, body.to_bytes()))
    }
}
