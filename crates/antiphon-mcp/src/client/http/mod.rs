//! The wire over Streamable HTTP: each message is a POST, answered by JSON or by an event stream.
//!
//! In legacy revisions a session adds a GET stream for messages of the server, streams that are resumed after a loss, and
//! requests of the server. In modern revisions a stream belongs to one request, and dropping it cancels the request.

mod admission;
mod connection;
mod endpoint;
mod event_parser;
mod headers;
mod incoming;
mod session;
mod sse;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use antiphon::http::{HeaderMap, Method, Response, StatusCode};
use antiphon::{BoxFuture, CancellationToken, RawJson};
use bytes::Bytes;
use hyper::body::Incoming;
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

pub(super) use endpoint::HttpSettings;
pub(super) use sse::HttpSse;

use self::admission::ServerRequests;
use self::endpoint::HttpEndpoint;
use self::session::Session;
use super::error::McpError;
use super::inbox::Inbox;
use super::wire::{Wire, WireCall};
use crate::types::{CancelledParams, Revision, methods};

/// How long a connection waits for the stream of its session. Some servers answer only with the first event.
const MAX_OPENING: Duration = Duration::from_secs(1);

/// The wire over Streamable HTTP.
pub(super) struct StreamableHttp {
    http: Arc<Http>,
}

/// What requests and streams share.
pub(super) struct Http {
    endpoint: HttpEndpoint,
    inbox: Arc<Inbox>,
    session: Session,
    requests: ServerRequests,
    /// Ends the tasks of this wire.
    closed: CancellationToken,
}

impl StreamableHttp {
    pub(super) fn new(settings: &HttpSettings, inbox: &Arc<Inbox>) -> Self {
        let http = Http {
            endpoint: HttpEndpoint::new(settings, inbox),
            inbox: inbox.clone(),
            session: Session::default(),
            requests: ServerRequests::default(),
            closed: CancellationToken::new(),
        };
        Self { http: Arc::new(http) }
    }
}

impl Drop for StreamableHttp {
    fn drop(&mut self) {
        self.http.closed.cancel();
    }
}

impl Wire for StreamableHttp {
    fn request(&self, call: WireCall) -> BoxFuture<'_, Result<RawJson, McpError>> {
        Box::pin(async move {
            let is_legacy = !self.http.session.is_modern();
            // A client never cancels `initialize` (2025-11-25, cancellation).
            let cancels = is_legacy && call.method != methods::INITIALIZE;
            let guard =
                cancels.then(|| CancelOnDrop { http: self.http.clone(), id: Some(call.id) });
            let outcome = self.http.exchange(call).await;
            if let Some(mut guard) = guard {
                guard.id = None;
            }
            outcome
        })
    }

    fn notify<'a>(
        &'a self,
        method: &'a str,
        params: Option<RawJson>,
    ) -> BoxFuture<'a, Result<(), McpError>> {
        Box::pin(async move { self.http.notify(method, params).await })
    }

    fn speak(&self, revision: Option<Revision>) {
        self.http.session.speak(revision);
    }

    /// A server does not repeat what it sends while the stream of the session is not open yet, so a call that is sent
    /// earlier may never end.
    fn initialized(&self) -> BoxFuture<'_, ()> {
        let http = self.http.clone();
        let ended = self.http.session.ended();
        let (opened, open) = oneshot::channel();
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = http.closed.cancelled() => {}
                () = http.listen(opened) => {}
            }
        });
        Box::pin(async {
            if timeout(MAX_OPENING, open).await.is_err() {
                tracing::debug!("the stream of the session is not open yet");
            }
        })
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.http.closed.cancelled())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.http.closed.cancel();
            self.http.end_session().await;
        })
    }
}

/// A message of this client.
#[derive(Serialize)]
struct Outgoing<'a> {
    jsonrpc: &'static str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
}

impl<'a> Outgoing<'a> {
    fn encode(
        method: &'a str,
        params: Option<&'a RawJson>,
        id: Option<u64>,
    ) -> Result<Bytes, McpError> {
        let message = Outgoing { jsonrpc: "2.0", method, params, id };
        let encode = |source| McpError::Encode { method: method.to_owned(), source };
        serde_json::to_vec(&message).map(Bytes::from).map_err(encode)
    }
}

impl Http {
    /// The headers of a message of this session.
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        self.session.add_headers(&mut headers);
        headers
    }

    /// Posts a request, and reads its response.
    async fn exchange(self: &Arc<Self>, call: WireCall) -> Result<RawJson, McpError> {
        let body = Outgoing::encode(&call.method, Some(&call.params), Some(call.id))?;
        let is_handshake = call.method == methods::INITIALIZE;
        let mut headers = if is_handshake { HeaderMap::new() } else { self.headers() };
        headers::of_post(&mut headers);
        if self.session.is_modern() {
            headers::of_message(&mut headers, &call.method, &call.headers);
        }
        let response = self.send(Method::POST, headers, body).await?;
        if is_handshake {
            self.session.take_id(response.headers())?;
        }
        if is_type(response.headers(), "text/event-stream") {
            return self.read_stream(response.into_body(), call.id).await;
        }
        if !is_type(response.headers(), "application/json") {
            let status = response.status();
            let reason = format!(
                "the response (status {status}) to `{}` is neither JSON nor an event stream",
                call.method
            );
            return Err(McpError::Protocol(reason));
        }
        let json = self.endpoint.body(response.into_body()).await?;
        let received = incoming::read(json, &self.inbox, Some(call.id))?;
        self.serve(received.requests);
        incoming::outcome(received.responses, call.id)?.ok_or_else(|| {
            McpError::Protocol(format!("the response to `{}` has no result", call.method))
        })
    }

    /// Sends a request. A status of failure is an error; 404 means that the session of the request has ended.
    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, McpError> {
        let has_session = headers.contains_key(headers::SESSION_ID);
        let response = self.endpoint.send(method, headers, body).await?;
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::NOT_FOUND if has_session => Err(McpError::SessionEnded),
            _ => Err(self.endpoint.failure(response).await),
        }
    }

    /// Posts a notification.
    async fn notify(&self, method: &str, params: Option<RawJson>) -> Result<(), McpError> {
        let body = Outgoing::encode(method, params.as_ref(), None)?;
        let mut headers = self.headers();
        if self.session.is_modern() {
            headers::of_message(&mut headers, method, &Default::default());
        }
        self.post(headers, body).await
    }

    /// Posts a message that has no response.
    async fn post(&self, mut headers: HeaderMap, body: Bytes) -> Result<(), McpError> {
        headers::of_post(&mut headers);
        let response = self.send(Method::POST, headers, body).await?;
        // Read to its end, so that the connection can be used again.
        self.endpoint.body(response.into_body()).await.map(drop)
    }

    /// Tells the server that the session is over.
    async fn end_session(&self) {
        let headers = self.headers();
        if !self.session.end() {
            return;
        }
        let deleting = self.endpoint.send(Method::DELETE, headers, Bytes::new());
        match timeout(Duration::from_secs(2), deleting).await {
            Ok(Ok(response)) if response.status() == StatusCode::METHOD_NOT_ALLOWED => {}
            Ok(Ok(response)) if response.status().is_success() => {}
            Ok(Ok(response)) => {
                tracing::debug!(status = %response.status(), "the session was not deleted");
            }
            Ok(Err(error)) => tracing::debug!(%error, "the session was not deleted"),
            Err(_) => tracing::debug!("the session was not deleted in time"),
        }
    }
}

/// Cancels a request of a legacy revision, for which a lost stream means nothing.
struct CancelOnDrop {
    http: Arc<Http>,
    id: Option<u64>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id, tokio::runtime::Handle::try_current()) else {
            return;
        };
        let http = self.http.clone();
        runtime.spawn(async move {
            let params = RawJson::encode(&CancelledParams::new(id)).ok();
            if let Err(error) = http.notify(methods::CANCELLED, params).await {
                tracing::debug!(%error, "a cancellation was not sent");
            }
        });
    }
}

/// Whether the content type, without its parameters, is this one.
fn is_type(headers: &HeaderMap, expected: &str) -> bool {
    let value = headers.get(antiphon::http::header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = value.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case(expected)
}
