//! Event streams: of one request, and of a legacy session.
//!
//! A stream that is lost is resumed if its events have ids, only in legacy revisions. A stream that ends again and again
//! without an event is given up, after growing pauses.

use std::sync::Arc;
use std::time::Duration;

use antiphon::RawJson;
use antiphon::core::encode;
use antiphon::http::{HeaderMap, HeaderValue, Method, StatusCode};
use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::admission::Admitted;
use super::endpoint::EventReader;
use super::incoming::{self, ServerRequest};
use super::{Http, headers, is_type};
use crate::client::error::McpError;

/// How often a stream may end in succession without an event.
const MAX_LOSSES: u32 = 6;
/// The pause before a stream is opened again, if the server names none. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The shortest pause, also if the server names a shorter one: it could otherwise keep the client busy.
const MIN_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Where a stream can be resumed, and how often it was lost.
#[derive(Default)]
struct Position {
    last_id: Option<String>,
    retry: Option<Duration>,
    losses: u32,
}

impl Position {
    /// Keeps what a stream has said before its end.
    fn update(&mut self, reader: &EventReader) {
        self.last_id = reader.parser.last_id.clone().or(self.last_id.take());
        self.retry = reader.parser.retry.or(self.retry);
    }

    /// Waits before the stream is opened again. Returns false if it was lost too often.
    async fn pause(&mut self) -> bool {
        if self.losses >= MAX_LOSSES {
            return false;
        }
        let named = self.retry.unwrap_or_default().min(MAX_PAUSE);
        let growing = FIRST_PAUSE * 2_u32.saturating_pow(self.losses);
        // The server may name a short pause, but not for a stream that brings nothing.
        let pause = if self.losses == 0 {
            self.retry.map_or(growing, |_| named)
        } else {
            growing.max(named)
        };
        sleep(pause.clamp(MIN_PAUSE, MAX_PAUSE)).await;
        self.losses += 1;
        true
    }
}

impl Http {
    /// Reads the stream of a request until its response.
    pub(super) async fn read_stream(
        self: &Arc<Self>,
        body: Incoming,
        id: u64,
    ) -> Result<RawJson, McpError> {
        let mut position = Position::default();
        let mut reader = self.endpoint.events(body);
        loop {
            let end = self.read_response(&mut reader, id, &mut position).await;
            let reason = match end {
                Ok(Some(result)) => return Ok(result),
                Ok(None) => "the event stream has ended without the response".to_owned(),
                Err(McpError::Interrupted(reason)) if !self.session.is_modern() => reason,
                Err(error) => return Err(error),
            };
            position.update(&reader);
            if self.session.is_modern() || position.last_id.is_none() {
                return Err(McpError::Interrupted(reason));
            }
            reader = self.resume(&mut position).await?.ok_or(McpError::Interrupted(reason))?;
        }
    }

    /// Reads events until the response, or the end of the stream.
    async fn read_response(
        self: &Arc<Self>,
        reader: &mut EventReader,
        id: u64,
        position: &mut Position,
    ) -> Result<Option<RawJson>, McpError> {
        while let Some(event) = reader.next().await? {
            position.losses = 0;
            if !is_message(&event.name) {
                continue;
            }
            let received = incoming::read(event.data, &self.inbox, Some(id))?;
            self.serve(received.requests);
            if let Some(result) = incoming::outcome(received.responses, id)? {
                return Ok(Some(result));
            }
        }
        Ok(None)
    }

    /// Opens a stream again after its last event. `None` if that is not possible, or was tried too often.
    async fn resume(&self, position: &mut Position) -> Result<Option<EventReader>, McpError> {
        while position.pause().await {
            match self.open_stream(position.last_id.as_deref()).await {
                Ok(reader) => return Ok(Some(reader)),
                Err(error) if may_pass(&error) => {
                    tracing::debug!(%error, "a stream is not resumed");
                }
                Err(McpError::SessionEnded) => return Err(McpError::SessionEnded),
                Err(error) => {
                    tracing::debug!(%error, "the server does not resume streams");
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Opens a stream by GET.
    async fn open_stream(&self, last_id: Option<&str>) -> Result<EventReader, McpError> {
        let mut headers = self.headers();
        headers::of_get(&mut headers);
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(headers::LAST_EVENT_ID, id);
        }
        let response = self.send(Method::GET, headers, Bytes::new()).await?;
        if !is_type(response.headers(), "text/event-stream") {
            return Err(McpError::Protocol("the response to GET is no event stream".to_owned()));
        }
        Ok(self.endpoint.events(response.into_body()))
    }

    /// Receives the messages of a legacy server that belong to no request. `opened` is dropped when the server has
    /// opened the stream for the first time, or refused it.
    pub(super) async fn listen(self: &Arc<Self>, opened: oneshot::Sender<()>) {
        let mut opened = Some(opened);
        let mut position = Position::default();
        loop {
            let stream = self.open_stream(position.last_id.as_deref()).await;
            drop(opened.take());
            match stream {
                Ok(mut reader) => {
                    if let Err(error) = self.read_messages(&mut reader, &mut position).await {
                        tracing::debug!(%error, "the stream of the session was lost");
                    }
                    position.update(&reader);
                }
                // The server has no such stream (2025-11-25, transports).
                Err(McpError::Status { status: StatusCode::METHOD_NOT_ALLOWED, .. }) => return,
                Err(error) if may_pass(&error) => {
                    tracing::debug!(%error, "no stream of the session");
                }
                Err(error) => {
                    return tracing::debug!(%error, "the server has no stream of the session");
                }
            }
            if !position.pause().await {
                return tracing::warn!("the stream of the session is lost and is not opened again");
            }
        }
    }

    async fn read_messages(
        self: &Arc<Self>,
        reader: &mut EventReader,
        position: &mut Position,
    ) -> Result<(), McpError> {
        while let Some(event) = reader.next().await? {
            position.losses = 0;
            if !is_message(&event.name) {
                continue;
            }
            // A message that cannot be read is one message, not the end of the stream.
            match incoming::read(event.data, &self.inbox, None) {
                Ok(received) => self.serve(received.requests),
                Err(error) => tracing::warn!(%error, "a message of the server is ignored"),
            }
        }
        Ok(())
    }

    /// Serves requests of a legacy server, each as a task. They end with the session: in the next one, the id of a
    /// response belongs to another request.
    pub(super) fn serve(self: &Arc<Self>, requests: Vec<ServerRequest>) {
        for request in requests {
            if self.session.is_modern() {
                tracing::warn!(method = request.method, "a modern server must not send requests");
                continue;
            }
            let Some(admitted) = self.requests.admit(request) else { continue };
            let (http, ended) = (self.clone(), self.session.ended());
            tokio::spawn(async move {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = http.closed.cancelled() => {}
                    () = http.answer(admitted) => {}
                }
            });
        }
    }

    async fn answer(&self, admitted: Admitted) {
        let Some(outcome) = admitted.outcome(&self.inbox).await else { return };
        let ServerRequest { id, method, .. } = admitted.request();
        let mut body = BytesMut::new();
        encode::response(id, &outcome, &mut body);
        let headers: HeaderMap = self.headers();
        if let Err(error) = self.post(headers, body.freeze()).await {
            tracing::warn!(%error, method, "the response to a request of the server was not sent");
        }
    }
}

/// Whether an event carries a message.
pub(super) fn is_message(name: &str) -> bool {
    name.is_empty() || name == "message"
}

/// Whether another attempt may succeed.
fn may_pass(error: &McpError) -> bool {
    matches!(error, McpError::Unreachable { .. } | McpError::Interrupted(_))
        || matches!(error, McpError::Status { status, .. } if status.is_server_error())
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_cannot_make_the_client_busy() {
        // Each stream brings an event, so it is never given up.
        let mut position = Position { retry: Some(Duration::ZERO), ..Position::default() };
        let start = Instant::now();
        assert!(position.pause().await);
        assert_eq!(start.elapsed(), MIN_PAUSE);
        position.losses = MAX_LOSSES;
        assert!(!position.pause().await);
    }
}
