//! Exchanges over HTTP/2, all on one connection, by hyper's client.

use std::time::Duration;

use antiphon_core::Limits;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use super::error::ExchangeError;
use super::request::{RequestBuffer, merged};
use super::response::ReceivedResponse;

pub(super) struct Http2<C> {
    client: Client<C, Full<Bytes>>,
    uri: Uri,
    headers: HeaderMap,
    limit: usize,
    stall: Duration,
}

impl<C: Connect + Clone + Send + Sync + 'static> Http2<C> {
    pub(super) fn new(connector: C, uri: Uri, headers: &HeaderMap, limits: &Limits) -> Self {
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build(connector);
        let (limit, stall) = (limits.longest_frame(), limits.stall_timeout);
        Self { client, uri, headers: headers.clone(), limit, stall }
    }

    pub(super) async fn post(
        &self,
        mut buffer: RequestBuffer,
    ) -> Result<ReceivedResponse, ExchangeError> {
        let own = buffer.overrides.take().map(|own| merged(&self.headers, &own.headers));
        let mut request = Request::new(buffer.into_message());
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.extend(own.unwrap_or_else(|| self.headers.clone()));
        self.post_whole(request).await
    }

    /// Like `post`, for a complete request.
    pub(super) async fn post_whole(
        &self,
        request: Request<Bytes>,
    ) -> Result<ReceivedResponse, ExchangeError> {
        let mut request = request.map(Full::new);
        // HTTP/2 has a length of its own.
        request.headers_mut().remove(CONTENT_LENGTH);
        *request.method_mut() = Method::POST;
        let response = self.client.request(request).await.map_err(|error| {
            let is_connect = error.is_connect();
            if is_connect {
                ExchangeError::from_connect(&error)
            } else {
                ExchangeError::Failed(ExchangeError::root(&error))
            }
        })?;
        let (parts, mut body) = response.into_parts();
        let mut whole = BytesMut::new();
        while let Some(frame) = self.in_time(body.frame()).await? {
            let frame =
                frame.map_err(|error| ExchangeError::BrokeOff(ExchangeError::root(&error)))?;
            let piece = frame.into_data().unwrap_or_default();
            if piece.len() > self.limit - whole.len() {
                return Err(ExchangeError::TooLarge(self.limit));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(ReceivedResponse::new(parts.status, whole.freeze()).with_headers(parts.headers))
    }

    /// Waits for the next part of a response, for at most `stall`.
    async fn in_time<T>(&self, piece: impl Future<Output = T>) -> Result<T, ExchangeError> {
        let stall = self.stall;
        let stalled = |_| ExchangeError::Stalled { stall, is_answering: true };
        timeout(stall, piece).await.map_err(stalled)
    }
}
