//! The wire over HTTP+SSE, the transport of revision 2024-11-05.
//!
//! One GET stream carries everything that the server sends. Its first event names the address that messages are posted
//! to. When the stream is lost, the session is over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::core::encode;
use antiphon::http::{HeaderMap, Method, Uri};
use antiphon::{BoxFuture, CancellationToken, RawJson};
use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;

use super::admission::{Admitted, ServerRequests};
use super::endpoint::{EventReader, HttpEndpoint, HttpSettings};
use super::incoming::{self, Received, ServerRequest};
use super::streams::is_message;
use super::{Outgoing, headers, is_type};
use crate::client::error::McpError;
use crate::client::inbox::{Inbox, locked};
use crate::client::wire::{Wire, WireCall};
use crate::types::{CancelledParams, Revision, methods};

/// How long the server may take to name the address for messages.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The wire over HTTP+SSE.
pub(in crate::client) struct HttpSse {
    endpoint: HttpEndpoint,
    inbox: Arc<Inbox>,
    session: Mutex<Option<Arc<SseSession>>>,
    closed: CancellationToken,
}

/// One GET stream.
struct SseSession {
    /// The address for messages.
    messages: HttpEndpoint,
    inbox: Arc<Inbox>,
    requests: ServerRequests,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<RawJson, McpError>>>>,
    ended: CancellationToken,
}

impl HttpSse {
    pub(in crate::client) fn new(settings: &HttpSettings, inbox: &Arc<Inbox>) -> Self {
        Self {
            endpoint: HttpEndpoint::new(settings, inbox),
            inbox: inbox.clone(),
            session: Mutex::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Opens the stream, and waits for the address for messages.
    async fn open(&self) -> Result<Arc<SseSession>, McpError> {
        let mut headers = HeaderMap::new();
        headers::of_get(&mut headers);
        let response = self.endpoint.send(Method::GET, headers, Bytes::new()).await?;
        if !response.status().is_success() {
            return Err(self.endpoint.failure(response).await);
        }
        if !is_type(response.headers(), "text/event-stream") {
            return Err(McpError::Protocol(
                "the server has no MCP transport at this URL".to_owned(),
            ));
        }
        let mut reader = self.endpoint.events(response.into_body());
        let address = tokio::time::timeout(HANDSHAKE, address(&mut reader)).await;
        let address = address.map_err(|_| McpError::TimedOut(HANDSHAKE))??;
        let session = Arc::new(SseSession {
            messages: self.endpoint.at(resolved(&self.endpoint.uri, &address)?),
            inbox: self.inbox.clone(),
            requests: ServerRequests::default(),
            pending: Mutex::default(),
            ended: self.closed.child_token(),
        });
        tokio::spawn(session.clone().run(reader));
        *locked(&self.session) = Some(session.clone());
        Ok(session)
    }

    /// The open session. Only a handshake opens one.
    async fn session(&self, method: &str) -> Result<Arc<SseSession>, McpError> {
        let open = locked(&self.session).clone().filter(|it| !it.ended.is_cancelled());
        match open {
            Some(session) => Ok(session),
            None if method == methods::INITIALIZE => self.open().await,
            None => Err(McpError::SessionEnded),
        }
    }
}

/// Reads the first event.
async fn address(reader: &mut EventReader) -> Result<String, McpError> {
    let event = reader.next().await?;
    let address = event.filter(|event| event.name == "endpoint").map(|event| event.data);
    address.and_then(|data| String::from_utf8(data).ok()).ok_or_else(|| {
        McpError::Protocol("the first event of the stream is not `endpoint`".to_owned())
    })
}

/// The absolute address. It must be on the same server: requests carry credentials.
fn resolved(base: &Uri, address: &str) -> Result<Uri, McpError> {
    let wrong = || {
        McpError::Protocol(format!(
            "the address for messages {address:?} is not on the same server"
        ))
    };
    let given: Uri = match address.parse::<Uri>() {
        Ok(uri) if uri.scheme().is_some() => uri,
        _ => {
            let (scheme, authority) = (base.scheme_str(), base.authority());
            let (Some(scheme), Some(authority)) = (scheme, authority) else { return Err(wrong()) };
            let path = if address.starts_with('/') {
                address.to_owned()
            } else {
                let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("{folder}/{address}")
            };
            format!("{scheme}://{authority}{path}").parse().map_err(|_| wrong())?
        }
    };
    let is_same = given.scheme() == base.scheme() && given.authority() == base.authority();
    is_same.then_some(given).ok_or_else(wrong)
}

impl SseSession {
    /// Reads the stream until it ends.
    async fn run(self: Arc<Self>, mut reader: EventReader) {
        loop {
            let event = tokio::select! {
                () = self.ended.cancelled() => break,
                event = reader.next() => event,
            };
            match event {
                Ok(Some(event)) if is_message(&event.name) => {
                    match incoming::read(event.data, &self.inbox, None) {
                        Ok(received) => self.deliver(received),
                        Err(error) => tracing::warn!(%error, "a message of the server is ignored"),
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "the event stream was lost");
                    break;
                }
            }
        }
        self.ended.cancel();
        // Their senders are dropped, so the calls fail.
        locked(&self.pending).clear();
    }

    fn deliver(self: &Arc<Self>, received: Received) {
        for response in received.responses {
            let waiter = response.id.as_u64().and_then(|id| locked(&self.pending).remove(&id));
            match waiter {
                Some(waiter) => drop(waiter.send(response.outcome.map_err(McpError::Rpc))),
                None => tracing::debug!(id = response.id.as_str(), "a response of no request"),
            }
        }
        for request in received.requests {
            let Some(admitted) = self.requests.admit(request) else { continue };
            let session = self.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = session.ended.cancelled() => {}
                    () = session.answer(admitted) => {}
                }
            });
        }
    }

    async fn answer(&self, admitted: Admitted) {
        let Some(outcome) = admitted.outcome(&self.inbox).await else { return };
        let ServerRequest { id, method, .. } = admitted.request();
        let mut body = BytesMut::new();
        encode::response(id, &outcome, &mut body);
        if let Err(error) = self.post(body.freeze()).await {
            tracing::warn!(%error, method, "the response to a request of the server was not sent");
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), McpError> {
        let mut headers = HeaderMap::new();
        headers::of_post(&mut headers);
        let response = self.messages.send(Method::POST, headers, body).await?;
        match response.status().is_success() {
            true => self.messages.body(response.into_body()).await.map(drop),
            false => Err(self.messages.failure(response).await),
        }
    }

    async fn notify(&self, method: &str, params: Option<RawJson>) -> Result<(), McpError> {
        self.post(Outgoing::encode(method, params.as_ref(), None)?).await
    }

    async fn exchange(self: &Arc<Self>, call: WireCall) -> Result<RawJson, McpError> {
        let (waiter, response) = oneshot::channel();
        locked(&self.pending).insert(call.id, waiter);
        let cancels = call.method != methods::INITIALIZE;
        let mut pending = PendingCall { session: self.clone(), id: call.id, cancels };
        if self.ended.is_cancelled() {
            return Err(McpError::SessionEnded);
        }
        let body = Outgoing::encode(&call.method, Some(&call.params), Some(call.id))?;
        self.post(body).await?;
        let lost = || McpError::Interrupted("the event stream has ended".to_owned());
        let outcome = response.await.map_err(|_| lost());
        pending.cancels = false;
        outcome?
    }
}

/// Removes a call on drop, and cancels it at the server.
struct PendingCall {
    session: Arc<SseSession>,
    id: u64,
    cancels: bool,
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let was_pending = locked(&self.session.pending).remove(&self.id).is_some();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !was_pending || !self.cancels {
            return;
        }
        let (session, id) = (self.session.clone(), self.id);
        runtime.spawn(async move {
            let params = RawJson::encode(&CancelledParams::new(id)).ok();
            let _ = session.notify(methods::CANCELLED, params).await;
        });
    }
}

impl Wire for HttpSse {
    fn request(&self, call: WireCall) -> BoxFuture<'_, Result<RawJson, McpError>> {
        Box::pin(async move { self.session(&call.method).await?.exchange(call).await })
    }

    fn notify<'a>(
        &'a self,
        method: &'a str,
        params: Option<RawJson>,
    ) -> BoxFuture<'a, Result<(), McpError>> {
        Box::pin(async move { self.session(method).await?.notify(method, params).await })
    }

    fn speak(&self, _: Option<Revision>) {}

    fn initialized(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn has_headers(&self) -> bool {
        false
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.closed.cancelled())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.cancel();
        Box::pin(std::future::ready(()))
    }
}

impl Drop for HttpSse {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_same_server_only() {
        let base: Uri = "http://127.0.0.1:80/mcp/sse".parse().unwrap();
        let address = |address: &str| resolved(&base, address).map(|uri| uri.to_string()).ok();
        let some = |uri: &str| Some(uri.to_owned());
        assert_eq!(address("/m?a=1"), some("http://127.0.0.1:80/m?a=1"));
        assert_eq!(address("m?a=1"), some("http://127.0.0.1:80/mcp/m?a=1"));
        assert_eq!(address("http://127.0.0.1:80/m"), some("http://127.0.0.1:80/m"));
        for other in
            ["http://127.0.0.2:80/m", "https://127.0.0.1:80/m", "http://127.0.0.1:81/m", "a b"]
        {
            assert_eq!(address(other), None, "{other}");
        }
    }
}
