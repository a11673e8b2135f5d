//! The policy of a service over HTTP: statuses, headers and bodies.
//!
//! A policy sees the head of each request, the message and its outcome. It never sees the bytes of a
//! connection. The default methods are plain JSON-RPC over HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};

use super::http_body::HttpBody;
use super::http_message::{HttpMessage, error_codes};
use super::refusal::HttpRefusal;
use super::response;
use super::server_sent_event::ServerSentEvent;
use crate::connection::Connection;

/// Decides how HTTP requests are answered: status, headers, and a body or a stream of events.
///
/// Each method has a default, which is plain JSON-RPC over HTTP. The order for one request is
/// [`on_head`](Self::on_head), [`on_message`](Self::on_message), the handlers, and
/// [`respond`](Self::respond). A request that is rejected at any step goes to
/// [`refuse`](Self::refuse) instead. Host, Origin and path are checked before `on_head`. A request that
/// becomes a WebSocket passes `on_head` only.
///
/// A [`Connection`] here is the request: its method, path and headers, the address of the client, and
/// extensions. An extension that a policy inserts is visible to handlers through
/// [`Context::extensions`](crate::Context::extensions).
///
/// A server with a policy leaves every request to hyper instead of the fast path. A policy that panics
/// fails its request with status 500.
///
/// ```
/// use antiphon::http::{Response, StatusCode};
/// use antiphon::transport::http::{HttpBody, HttpMessage, HttpOutcome, HttpPolicy};
/// use antiphon::Connection;
///
/// /// Answers a call of an unknown method with status 404.
/// struct NotFound;
///
/// impl HttpPolicy for NotFound {
///     fn respond(
///         &self,
///         _request: &Connection,
///         _message: &HttpMessage,
///         outcome: HttpOutcome,
///     ) -> Response<HttpBody> {
///         let is_unknown = outcome.error_codes() == [Some(-32601)];
///         let mut response = outcome.into_response();
///         if is_unknown {
///             *response.status_mut() = StatusCode::NOT_FOUND;
///         }
///         response
///     }
/// }
/// ```
pub trait HttpPolicy: Send + Sync + 'static {
    /// Decides on a request by its head, before the body is read.
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        let _ = request;
        HeadDecision::Continue
    }

    /// Decides on a message before any handler runs.
    fn on_message(&self, request: &mut Connection, message: &HttpMessage) -> MessageDecision {
        let _ = (request, message);
        MessageDecision::Dispatch
    }

    /// The response to a message whose handlers are done. Not called once the response is a stream of
    /// events: then the reply is the last event.
    fn respond(
        &self,
        request: &Connection,
        message: &HttpMessage,
        outcome: HttpOutcome,
    ) -> Response<HttpBody> {
        let _ = (request, message);
        outcome.into_response()
    }

    /// The response to a request that is refused before any handler runs, or at shutdown.
    fn refuse(&self, request: &Connection, refusal: HttpRefusal) -> Response<HttpBody> {
        let _ = request;
        refusal.into_response()
    }
}

/// The decision of a policy on the head of a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum HeadDecision {
    /// Requires POST and a JSON content type, and reads the body as a message.
    Continue,
    /// Reads the body as a message, for every method and content type.
    ReadBody,
    /// Responds without reading the body.
    Respond(Response<HttpBody>),
}

/// The decision of a policy on a message.
#[derive(Debug)]
#[non_exhaustive]
pub enum MessageDecision {
    /// Runs the handlers. They cannot notify the caller.
    Dispatch,
    /// Runs the handlers. They can notify the caller, which makes the response a stream of events. The
    /// extensions of the request hold the [`EventSender`](super::EventSender) of that stream, for
    /// events that are not notifications.
    Stream(EventStreamOptions),
    /// Responds without running a handler.
    Respond(Response<HttpBody>),
}

/// How a response becomes a stream of events.
///
/// The response is a stream from the first notification on. Without any notification, it is the one
/// of [`HttpPolicy::respond`].
///
/// ```
/// use antiphon::transport::http::EventStreamOptions;
/// use std::time::Duration;
///
/// let options = EventStreamOptions::new().keep_alive(Duration::from_secs(15));
/// ```
#[derive(Clone)]
pub struct EventStreamOptions {
    pub(super) capacity: usize,
    pub(super) keep_alive: Option<Duration>,
    pub(super) is_immediate: bool,
    pub(super) cancel_on_disconnect: bool,
    pub(super) headers: HeaderMap,
    pub(super) event: Arc<dyn Fn(Bytes) -> ServerSentEvent + Send + Sync>,
}

impl Default for EventStreamOptions {
    fn default() -> Self {
        Self {
            capacity: 16,
            keep_alive: None,
            is_immediate: false,
            cancel_on_disconnect: true,
            headers: HeaderMap::new(),
            event: Arc::new(ServerSentEvent::data),
        }
    }
}

impl EventStreamOptions {
    /// A stream that holds up to 16 events, starts with the first notification, and whose handlers are
    /// cancelled when the client disconnects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many events wait until the client reads. A handler that notifies waits beyond that, and
    /// beyond [`Limits::write_queue_bytes`](crate::Limits::write_queue_bytes).
    #[must_use]
    pub fn capacity(mut self, events: usize) -> Self {
        self.capacity = events;
        self
    }

    /// Sends a comment after this much idle time. The default is 15 seconds.
    #[must_use]
    pub fn keep_alive(mut self, period: Duration) -> Self {
        self.keep_alive = Some(period);
        self
    }

    /// Starts the stream at once, even if no handler notifies. The response keeps the connection alive
    /// through proxies while a handler runs.
    #[must_use]
    pub fn immediately(mut self) -> Self {
        self.is_immediate = true;
        self
    }

    /// Sets whether handlers are cancelled when the client disconnects. Otherwise they run to their
    /// end, and each message still passes [`event`](Self::event). A notification then succeeds even if
    /// the client is gone; [`EventSender::is_closed`](super::EventSender::is_closed) reports that. Limit their number with a
    /// [`Concurrency`](crate::layer::Concurrency) layer: the limit of connections does not hold for
    /// clients that are gone.
    #[must_use]
    pub fn cancel_on_disconnect(mut self, cancel: bool) -> Self {
        self.cancel_on_disconnect = cancel;
        self
    }

    /// Adds headers to the response.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    /// Sets how a message becomes an event, for example with an id that allows a client to resume. It
    /// is called for each message in the order of the stream.
    #[must_use]
    pub fn event(
        mut self,
        event: impl Fn(Bytes) -> ServerSentEvent + Send + Sync + 'static,
    ) -> Self {
        self.event = Arc::new(event);
        self
    }
}

impl fmt::Debug for EventStreamOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStreamOptions")
            .field("capacity", &self.capacity)
            .field("is_immediate", &self.is_immediate)
            .field("cancel_on_disconnect", &self.cancel_on_disconnect)
            .finish_non_exhaustive()
    }
}

/// The outcome of a message whose handlers are done.
#[derive(Debug)]
pub struct HttpOutcome {
    reply: Option<Bytes>,
    challenge: Option<&'static str>,
}

impl HttpOutcome {
    pub(super) fn new(reply: Option<Bytes>, challenge: Option<&'static str>) -> Self {
        Self { reply, challenge }
    }

    /// The encoded response, or the Array of them; `None` for notifications only.
    pub fn reply(&self) -> Option<&Bytes> {
        self.reply.as_ref()
    }

    /// Takes the encoded response.
    pub fn into_reply(self) -> Option<Bytes> {
        self.reply
    }

    /// The error code of each response, in order; `None` for a result. Decoded on each call.
    pub fn error_codes(&self) -> Vec<Option<i64>> {
        self.reply.as_ref().map_or_else(Vec::new, |reply| error_codes(reply))
    }

    /// The value of `www-authenticate`, where every call was rejected for lack of credentials.
    pub fn challenge(&self) -> Option<&'static str> {
        self.challenge
    }

    /// The default response: 200 with the reply, 204 without one, and 401 where every call was rejected
    /// for lack of credentials.
    pub fn into_response(self) -> Response<HttpBody> {
        response::reply(self.reply, self.challenge)
    }
}
