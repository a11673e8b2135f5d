//! HTTP+SSE, the transport of 2024-11-05: a GET opens a stream, whose first event names the URL for messages.
//!
//! Each stream is a duplex connection like any other: what the client posts goes in, and what the server sends comes out
//! as events. So the handler of connections serves it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll};

use antiphon::http::{Response, StatusCode};
use antiphon::transport::TransportError;
use antiphon::transport::http::{EventSender, EventStream, HttpBody, ServerSentEvent};
use antiphon::{Connection, Dialect, Limits, Server};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::{Sink, SinkExt as _};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSender;

use super::http_session::Principal;
use super::options::StreamableHttp;
use super::request::HttpRequest;
use crate::McpServer;
use crate::server::random_id;

/// The name of the query parameter with the id of a stream.
const PARAMETER: &str = "sessionId";
/// How many messages of a client may wait for the server, and how many bytes of them.
const WAITING_MESSAGES: usize = 64;
const WAITING_BYTES: u32 = 4 << 20;
/// How many events may wait for the client.
const WAITING_EVENTS: usize = 64;

/// The open streams.
pub(super) struct SseStreams {
    limit: usize,
    /// The limits of the connection that each stream is.
    limits: Limits,
    table: Mutex<HashMap<String, SseStream>>,
}

/// The way from the POSTs of a client to its stream.
#[derive(Clone)]
struct SseStream {
    principal: Principal,
    messages: mpsc::Sender<WaitingMessage>,
    /// One permit for each byte that may wait.
    bytes: Arc<Semaphore>,
}

/// A message that waits for the server, with the bytes that it takes of the limit.
struct WaitingMessage {
    message: Bytes,
    _bytes: OwnedSemaphorePermit,
}

impl SseStreams {
    pub(super) fn new(options: &StreamableHttp) -> Arc<Self> {
        let limits = Limits { in_flight: options.session_calls.max(1), ..Limits::default() };
        Arc::new(Self { limit: options.max_sessions, limits, table: Mutex::default() })
    }

    /// Opens a stream.
    pub(super) fn open(
        self: &Arc<Self>,
        server: &McpServer,
        request: &Connection,
    ) -> Result<Response<HttpBody>, StatusCode> {
        let id = random_id().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        let (messages, waiting) = mpsc::channel(WAITING_MESSAGES);
        {
            let mut table = self.table();
            if table.len() >= self.limit {
                return Err(StatusCode::SERVICE_UNAVAILABLE);
            }
            let bytes = Arc::new(Semaphore::new(WAITING_BYTES as usize));
            let principal = Principal::of(request);
            table.insert(id.clone(), SseStream { principal, messages, bytes });
        }
        let guard = StreamGuard { streams: self.clone(), id };
        let (events, stream) = EventStream::channel(WAITING_EVENTS);
        let path = request.path().unwrap_or("/");
        let server = server.clone();
        let endpoint = ServerSentEvent::data(format!("{path}?{PARAMETER}={}", guard.id));
        let _ = events.try_send(&endpoint.event("endpoint"));
        let (replies, sent) = mpsc::channel(WAITING_EVENTS);
        let transport = SseTransport { waiting, replies: PollSender::new(replies) };
        let mut connection = request.clone();
        connection.extensions.insert(HttpRequest::Sse);
        let connection = Server::from_transport(transport, connection)
            .dialect(Dialect::mcp())
            .limits(self.limits.clone());
        tokio::spawn(async move {
            let _guard = guard;
            tokio::select! {
                () = events.closed() => {}
                _ = connection.serve(server) => {}
                () = carry(sent, &events) => {}
            }
            events.finish();
        });
        Ok(stream.into_response())
    }

    /// Passes a message to the stream that the query names. `None` if the query names none.
    pub(super) fn post(
        &self,
        request: &Connection,
        principal: &Principal,
        message: &Bytes,
    ) -> Option<StatusCode> {
        let pairs = request.query()?.split('&').filter_map(|pair| pair.split_once('='));
        let (_, id) = pairs.into_iter().find(|(name, _)| *name == PARAMETER)?;
        let stream = self.table().get(id).filter(|it| it.principal == *principal).cloned();
        let Some(stream) = stream else { return Some(StatusCode::NOT_FOUND) };
        // A message over the limit takes all of it.
        let bytes = u32::try_from(message.len()).unwrap_or(u32::MAX).min(WAITING_BYTES);
        let Ok(bytes) = stream.bytes.try_acquire_many_owned(bytes) else {
            return Some(StatusCode::SERVICE_UNAVAILABLE);
        };
        let waiting = WaitingMessage { message: message.clone(), _bytes: bytes };
        Some(match stream.messages.try_send(waiting) {
            Ok(()) => StatusCode::ACCEPTED,
            Err(TrySendError::Full(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Err(TrySendError::Closed(_)) => StatusCode::NOT_FOUND,
        })
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, SseStream>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection of a stream: what was posted comes in, and events go out.
struct SseTransport {
    waiting: mpsc::Receiver<WaitingMessage>,
    replies: PollSender<Bytes>,
}

impl Stream for SseTransport {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        self.waiting.poll_recv(poller).map(|waiting| waiting.map(|waiting| Ok(waiting.message)))
    }
}

impl Sink<Bytes> for SseTransport {
    type Error = TransportError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.replies.poll_ready_unpin(poller).map_err(gone)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> Result<(), TransportError> {
        self.replies.start_send_unpin(message).map_err(gone)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.replies.poll_flush_unpin(poller).map_err(gone)
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.replies.poll_close_unpin(poller).map_err(gone)
    }
}

fn gone<E>(_: E) -> TransportError {
    TransportError::Broken("the client has closed the event stream".to_owned())
}

/// Sends what the server has sent as events, until one side ends.
async fn carry(mut sent: mpsc::Receiver<Bytes>, events: &EventSender) {
    while let Some(message) = sent.recv().await {
        if events.send(&ServerSentEvent::data(message).event("message")).await.is_err() {
            return;
        }
    }
}

/// Removes a stream from the table when it ends.
struct StreamGuard {
    streams: Arc<SseStreams>,
    id: String,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.streams.table().remove(&self.id);
    }
}
