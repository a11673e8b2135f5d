//! The part of the policy that serves legacy clients: their sessions, their streams, and their batches.

use std::sync::Arc;

use antiphon::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use antiphon::transport::http::{
    EventStream, EventStreamOptions, HttpBody, HttpMessage, MessageDecision,
};
use antiphon::{Code, Connection, ErrorObject};
use bytes::Bytes;
use serde_json::value::RawValue;

use super::accept::{EVENT_STREAM, accepts};
use super::headers::PROTOCOL_VERSION;
use super::http_session::{HttpSession, Principal};
use super::incoming::Incoming;
use super::policy::McpPolicy;
use super::request::HttpRequest;
use super::responses::{error_response, method_not_allowed, refuse, status};
use super::resumable_stream::ResumableStream;
use crate::server::{NoLink, Session, random_id, unsupported};
use crate::types::{Revision, methods};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: &str = "last-event-id";

impl McpPolicy {
    /// Opens a stream of a session.
    pub(super) fn open_stream(&self, request: &Connection) -> Response<HttpBody> {
        let headers = request.headers();
        if !accepts(headers, EVENT_STREAM) {
            return refuse(StatusCode::NOT_ACCEPTABLE, "accept text/event-stream");
        }
        let session = match self.checked_session(request) {
            Ok(Some(session)) => session,
            Ok(None) => return self.open_sse(request),
            Err(response) => return *response,
        };
        // All events of the log fit, and then some more.
        let capacity = self.options.event_log_events.saturating_add(16);
        let (sender, stream) = EventStream::channel(capacity);
        let last_event = headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or_default());
        match session.read(last_event, sender) {
            Ok(()) => stream.keep_alive(self.options.keep_alive).into_response(),
            Err(_) => refuse(
                StatusCode::BAD_REQUEST,
                "Last-Event-ID: the session has no such event; repeat the request",
            ),
        }
    }

    /// Opens a stream of HTTP+SSE.
    fn open_sse(&self, request: &Connection) -> Response<HttpBody> {
        match &self.sse {
            Some(sse) => sse.open(&self.server, request).unwrap_or_else(status),
            None => method_not_allowed(),
        }
    }

    pub(super) fn end_session(&self, request: &Connection) -> Response<HttpBody> {
        match self.checked_session(request) {
            Ok(Some(session)) => {
                self.sessions.remove(session.id());
                status(StatusCode::NO_CONTENT)
            }
            Ok(None) => method_not_allowed(),
            Err(response) => *response,
        }
    }

    /// Returns the session of a GET, a DELETE or a batch. Its revision is checked too.
    fn checked_session(
        &self,
        request: &Connection,
    ) -> Result<Option<Arc<HttpSession>>, Box<Response<HttpBody>>> {
        let session = self.session_of(request, None)?;
        if session.is_some() {
            self.check_legacy_version(request.headers(), None)?;
        }
        Ok(session)
    }

    /// Returns the session that the headers name. The session of another caller is not found. `id` is the one of the
    /// request, for the error.
    fn session_of(
        &self,
        request: &Connection,
        id: Option<&RawValue>,
    ) -> Result<Option<Arc<HttpSession>>, Box<Response<HttpBody>>> {
        let Some(name) = request.headers().get(SESSION_ID).filter(|_| self.options.sessions) else {
            return Ok(None);
        };
        let principal = principal(request);
        let session = name.to_str().ok().and_then(|name| self.sessions.get(name, &principal));
        let gone = || {
            let error = ErrorObject::new(
                Code::INVALID_REQUEST.0,
                "Session not found: it has ended; send initialize",
            );
            Box::new(error_response(StatusCode::NOT_FOUND, id, &error))
        };
        session.map(Some).ok_or_else(gone)
    }

    /// Decides on a message of a legacy client.
    pub(super) fn legacy(
        &self,
        request: &mut Connection,
        incoming: &Incoming<'_>,
    ) -> MessageDecision {
        let id = incoming.request_id();
        if let Err(response) = self.check_legacy_version(request.headers(), id) {
            return MessageDecision::Respond(*response);
        }
        if incoming.method.as_deref() == Some(methods::INITIALIZE) {
            return self.initialize(request);
        }
        let session = match self.session_of(request, id) {
            Ok(session) => session,
            Err(response) => return MessageDecision::Respond(*response),
        };
        match session {
            Some(session) => self.in_session(request, incoming, session),
            None if self.options.sessions => {
                let error = ErrorObject::new(
                    Code::INVALID_REQUEST.0,
                    "Mcp-Session-Id is missing: send initialize first, or the metadata of 2026-07-28",
                );
                let response = error_response(StatusCode::BAD_REQUEST, id, &error);
                MessageDecision::Respond(response)
            }
            None if incoming.is_response() => {
                MessageDecision::Respond(status(StatusCode::ACCEPTED))
            }
            None => {
                let session = self.stateless(request.headers());
                request.extensions.insert(HttpRequest::Stateless(session));
                self.stream(request, None)
            }
        }
    }

    /// Checks the revision in the header of a legacy request. Clients before 2025-06-18 send none.
    fn check_legacy_version(
        &self,
        headers: &HeaderMap,
        id: Option<&RawValue>,
    ) -> Result<(), Box<Response<HttpBody>>> {
        let Some(version) = headers.get(PROTOCOL_VERSION) else { return Ok(()) };
        let revisions = &self.server.settings().revisions;
        let version = version.to_str().unwrap_or_default();
        let known = Revision::parse(version).filter(|revision| revisions.contains(revision));
        match known {
            Some(_) => Ok(()),
            None => {
                let error = unsupported(version, revisions);
                Err(Box::new(error_response(StatusCode::BAD_REQUEST, id, &error)))
            }
        }
    }

    /// Prepares the session that `initialize` begins.
    fn initialize(&self, request: &mut Connection) -> MessageDecision {
        let new = match self.options.sessions {
            true => match random_id() {
                Ok(id) => {
                    let principal = principal(request);
                    let new = HttpSession::new(id, principal, &self.options, &self.limits);
                    HttpRequest::NewSession(Arc::new(new))
                }
                Err(_) => {
                    let response = status(StatusCode::INTERNAL_SERVER_ERROR);
                    return MessageDecision::Respond(response);
                }
            },
            false => HttpRequest::Stateless(Arc::new(Session::new(NoLink))),
        };
        request.extensions.insert(new);
        MessageDecision::Dispatch
    }

    fn in_session(
        &self,
        request: &mut Connection,
        incoming: &Incoming<'_>,
        session: Arc<HttpSession>,
    ) -> MessageDecision {
        if incoming.is_response() {
            let status = match session.deliver(incoming) {
                true => status(StatusCode::ACCEPTED),
                false => refuse(
                    StatusCode::BAD_REQUEST,
                    "a response has either a result or an error with a code and a message",
                ),
            };
            return MessageDecision::Respond(status);
        }
        if cancel(incoming, &session) {
            return MessageDecision::Respond(status(StatusCode::ACCEPTED));
        }
        request.extensions.insert(HttpRequest::Session(session.clone()));
        self.stream(request, Some(session))
    }

    /// Runs the handlers. Their notifications become events with ids, from which a client can resume.
    fn stream(
        &self,
        request: &mut Connection,
        session: Option<Arc<HttpSession>>,
    ) -> MessageDecision {
        if !accepts(request.headers(), EVENT_STREAM) {
            return MessageDecision::Dispatch;
        }
        let options = EventStreamOptions::new().keep_alive(self.options.keep_alive);
        let Some(session) = session else { return MessageDecision::Stream(options) };
        let stream = ResumableStream::new(session, self.options.retry);
        request.extensions.insert(stream.clone());
        let event = move |message: Bytes| stream.event(message);
        MessageDecision::Stream(options.cancel_on_disconnect(false).event(event))
    }

    /// The session of one request of a server without sessions. Nothing is known of its client.
    fn stateless(&self, headers: &HeaderMap) -> Arc<Session> {
        let version = headers.get(PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
        let revision = version.and_then(Revision::parse).unwrap_or(Revision::V2025_03_26);
        let session = Session::new(NoLink);
        session.assume(revision);
        Arc::new(session)
    }

    /// Decides on a batch, which only sessions of 2025-03-26 may send.
    pub(super) fn on_batch(
        &self,
        request: &mut Connection,
        message: &HttpMessage,
    ) -> MessageDecision {
        let session = match self.checked_session(request) {
            Ok(session) => session.filter(|session| session.allows_batches()),
            Err(response) => return MessageDecision::Respond(*response),
        };
        let Some(session) = session else {
            let reason = "Invalid Request: batches exist only in revision 2025-03-26";
            let error = ErrorObject::new(Code::INVALID_REQUEST.0, reason);
            let response = error_response(StatusCode::BAD_REQUEST, None, &error);
            return MessageDecision::Respond(response);
        };
        deliver_all(message.body(), &session);
        request.extensions.insert(HttpRequest::Session(session.clone()));
        self.stream(request, Some(session))
    }

    /// Adds the session that `initialize` has begun.
    pub(super) fn begin_session(
        &self,
        new: &Arc<HttpSession>,
        mut response: Response<HttpBody>,
    ) -> Response<HttpBody> {
        let Ok(id) = HeaderValue::from_str(new.id()) else {
            return status(StatusCode::INTERNAL_SERVER_ERROR);
        };
        if self.sessions.insert(new.clone()).is_err() {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many sessions; try again later");
        }
        response.headers_mut().insert(SESSION_ID, id);
        response
    }
}

/// Who sends a request, as its head has told.
pub(super) fn principal(request: &Connection) -> Principal {
    request.extensions.get().cloned().unwrap_or_default()
}

/// Delivers the responses and cancellations in a batch. The handlers of its calls run afterwards, and ignore them.
fn deliver_all(batch: &[u8], session: &HttpSession) {
    let entries: Vec<&RawValue> = serde_json::from_slice(batch).unwrap_or_default();
    for incoming in entries.iter().filter_map(|entry| Incoming::read(entry.get().as_bytes())) {
        if incoming.is_response() {
            session.deliver(&incoming);
        } else {
            cancel(&incoming, session);
        }
    }
}

/// Cancels the call that a message cancels. Returns false if the message is not a cancellation.
fn cancel(incoming: &Incoming<'_>, session: &HttpSession) -> bool {
    let is_cancellation =
        incoming.method.as_deref() == Some(methods::CANCELLED) && incoming.id.is_none();
    if is_cancellation && let Some(id) = cancelled_id(incoming) {
        session.cancel(id.get());
    }
    is_cancellation
}

/// The id in a cancellation, as text.
fn cancelled_id<'a>(incoming: &Incoming<'a>) -> Option<&'a RawValue> {
    #[derive(serde::Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "requestId")]
        request_id: &'a RawValue,
    }
    let params = incoming.params?.get();
    if !params.starts_with('{') {
        return None;
    }
    Some(serde_json::from_str::<Params<'a>>(params).ok()?.request_id)
}
