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

/// Decides the response to each HTTP request: status, headers, and a body or a stream of events.
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
/// The methods run on the task of the connection, so they must not block. A policy that panics fails its
/// request with status 500.
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
    /// Decides on a request by its head, before the body is read and before
    /// [`Server::on_connect`](crate::Server::on_connect) runs.
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        let _ = request;
        HeadDecision::Continue
    }

    /// Decides on a message before any handler runs.
    fn on_message(&self, request: &mut Connection, message: &HttpMessage) -> MessageDecision {
        let _ = (request, message);
        MessageDecision::Dispatch
    }

    /// Creates the HTTP response after the handlers have finished. Not called once an event stream has
    /// started: the JSON-RPC response is then its last event.
    fn respond(
        &self,
        request: &Connection,
        message: &HttpMessage,
        outcome: HttpOutcome,
    ) -> Response<HttpBody> {
        let _ = (request, message);
        outcome.into_response()
    }

    /// Creates the HTTP response to a request that is refused: before any handler runs, at a shutdown, or
    /// because a layer or the fallback failed.
    fn refuse(&self, request: &Connection, refusal: HttpRefusal) -> Response<HttpBody> {
        let _ = request;
        refusal.into_response()
    }
}

/// The decision of a policy on the head of a request.
///
/// ```
/// use antiphon::Connection;
/// use antiphon::http::{Response, StatusCode};
/// use antiphon::transport::http::{HeadDecision, HttpBody, HttpPolicy};
///
/// /// Requires an API key, before a body is read.
/// struct RequiresKey(&'static str);
///
/// impl HttpPolicy for RequiresKey {
///     fn on_head(&self, request: &mut Connection) -> HeadDecision {
///         if request.headers().get("x-api-key").is_some_and(|key| key == self.0) {
///             return HeadDecision::Continue;
///         }
///         let mut response = Response::new(HttpBody::from("send the header x-api-key"));
///         *response.status_mut() = StatusCode::UNAUTHORIZED;
///         HeadDecision::Respond(response)
///     }
/// }
/// ```
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
///
/// A policy that responds with an event stream to clients that accept one:
///
/// ```
/// use antiphon::http::{Request, header::ACCEPT};
/// use antiphon::transport::http::{
///     EventStreamOptions, HttpMessage, HttpPolicy, HttpService, MessageDecision,
/// };
/// use antiphon::{Connection, Context, Router};
/// use http_body_util::{BodyExt, Full};
/// use tower::ServiceExt;
///
/// struct Streams;
///
/// impl HttpPolicy for Streams {
///     fn on_message(&self, request: &mut Connection, _: &HttpMessage) -> MessageDecision {
///         let accepted = request.headers().get(ACCEPT);
///         if accepted.is_some_and(|value| value == "text/event-stream") {
///             MessageDecision::Stream(EventStreamOptions::new())
///         } else {
///             MessageDecision::Dispatch
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let router = Router::new().method("work", |(): (), cx: Context| async move {
///     cx.notify("status", ["half done"]).await?;
///     Ok("done")
/// });
/// let request = Request::post("/")
///     .header("content-type", "application/json")
///     .header(ACCEPT, "text/event-stream")
///     .body(Full::from(r#"{"jsonrpc":"2.0","method":"work","id":1}"#))?;
/// let response = HttpService::new(router).policy(Streams).oneshot(request).await?;
/// let body = response.into_body().collect().await?.to_bytes();
/// assert_eq!(
///     body,
///     concat!(
///         ": open\n\n",
///         "data: {\"jsonrpc\":\"2.0\",\"method\":\"status\",\"params\":[\"half done\"]}\n\n",
///         "data: {\"jsonrpc\":\"2.0\",\"result\":\"done\",\"id\":1}\n\n",
///     )
/// );
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum MessageDecision {
    /// Runs the handlers. They cannot notify the caller:
    /// [`CallError::CannotCallBack`](crate::CallError::CannotCallBack).
    Dispatch,
    /// Runs the handlers. They can notify the caller, which makes the response a stream of events. The
    /// extensions of the request hold the [`EventSender`](super::EventSender) of that stream, for
    /// events that are not notifications.
    Stream(EventStreamOptions),
    /// Responds without running a handler.
    Respond(Response<HttpBody>),
}

/// The options of a response that is a stream of events.
///
/// The stream starts with the first notification. Without one, [`HttpPolicy::respond`] creates the
/// response.
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
    /// Creates the event of a message; `None` for an event that has only data.
    pub(super) event: Option<Arc<dyn Fn(Bytes) -> ServerSentEvent + Send + Sync>>,
}

impl Default for EventStreamOptions {
    fn default() -> Self {
        Self {
            capacity: 16,
            keep_alive: None,
            is_immediate: false,
            cancel_on_disconnect: true,
            headers: HeaderMap::new(),
            event: None,
        }
    }
}

impl EventStreamOptions {
    /// Creates options for a stream that queues up to 16 events, starts with the first notification, and
    /// whose handlers are cancelled when the client disconnects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the queue size in events (at least one). While the queue is full,
    /// [`Context::notify`](crate::Context::notify) waits. The queue is also full at
    /// [`Limits::write_queue_bytes`](crate::Limits::write_queue_bytes).
    #[must_use]
    pub fn capacity(mut self, events: usize) -> Self {
        self.capacity = events;
        self
    }

    /// Sends a comment after this much idle time (at least 100 ms). The default is 15 seconds.
    #[must_use]
    pub fn keep_alive(mut self, period: Duration) -> Self {
        self.keep_alive = Some(period);
        self
    }

    /// Starts the stream at once, even if no handler notifies. Its keep-alive comments stop proxies from
    /// closing the connection while a handler runs.
    #[must_use]
    pub fn immediately(mut self) -> Self {
        self.is_immediate = true;
        self
    }

    /// Sets whether handlers are cancelled when the client disconnects. The default is true.
    ///
    /// If false, handlers run to their end after a disconnect; their messages still pass
    /// [`event`](Self::event), and [`Context::notify`](crate::Context::notify) returns `Ok`.
    /// [`EventSender::is_closed`](super::EventSender::is_closed) tells whether the client is gone. Limit the
    /// number of such handlers with a [`Concurrency`](crate::layer::Concurrency) layer, because they do
    /// not count against [`Limits::connections`](crate::Limits::connections).
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

    /// Sets the function that creates the event of a message, for example with an id that allows a client
    /// to resume. It is called for each message in the order of the stream. It must not block.
    #[must_use]
    pub fn event(
        mut self,
        event: impl Fn(Bytes) -> ServerSentEvent + Send + Sync + 'static,
    ) -> Self {
        self.event = Some(Arc::new(event));
        self
    }

    /// The event of a message.
    pub(super) fn event_of(&self, message: Bytes) -> ServerSentEvent {
        match &self.event {
            Some(event) => event(message),
            None => ServerSentEvent::data(message),
        }
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

/// The outcome of a message after its handlers have finished.
#[derive(Debug)]
pub struct HttpOutcome {
    reply: Option<Bytes>,
    challenge: Option<&'static str>,
}

impl HttpOutcome {
    pub(super) fn new(reply: Option<Bytes>, challenge: Option<&'static str>) -> Self {
        Self { reply, challenge }
    }

    /// Returns the encoded JSON-RPC response, or the Array of a batch; `None` if the message had only
    /// notifications.
    pub fn reply(&self) -> Option<&Bytes> {
        self.reply.as_ref()
    }

    /// Takes the encoded JSON-RPC response, like [`reply`](Self::reply).
    pub fn into_reply(self) -> Option<Bytes> {
        self.reply
    }

    /// Returns the error code of each response, in order; `None` for a result. Decodes the reply on each
    /// call.
    pub fn error_codes(&self) -> Vec<Option<i64>> {
        self.reply.as_ref().map_or_else(Vec::new, |reply| error_codes(reply))
    }

    /// Returns the value for `www-authenticate`, if every call was rejected for lack of credentials.
    pub fn challenge(&self) -> Option<&'static str> {
        self.challenge
    }

    /// Creates the default response: status 200 with the reply, 204 without one, and 401 if every call was
    /// rejected for lack of credentials.
    pub fn into_response(self) -> Response<HttpBody> {
        response::reply(self.reply, self.challenge)
    }
}
