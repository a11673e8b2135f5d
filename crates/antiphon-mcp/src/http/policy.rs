//! The HTTP policy: finds the era and the session of each request, and the status of each response.

use std::fmt;
use std::sync::Arc;

use antiphon::http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use antiphon::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use antiphon::transport::http::{
    EventStream, EventStreamOptions, HeadDecision, HttpBody, HttpMessage, HttpOutcome, HttpPolicy,
    MessageDecision,
};
use antiphon::{Code, Connection, ErrorObject};
use bytes::Bytes;
use serde_json::value::RawValue;

use super::cors;
use super::endpoint_limits::EndpointLimits;
use super::headers::{self, PROTOCOL_VERSION};
use super::http_session::{HttpSession, Principal};
use super::http_sse::SseStreams;
use super::incoming::Incoming;
use super::options::StreamableHttp;
use super::request::HttpRequest;
use super::resumable_stream::ResumableStream;
use super::sessions::Sessions;
use crate::McpServer;
use crate::server::{NoLink, RequestMeta, RequestParams, Session, random_id, unsupported};
use crate::types::error_codes::{
    HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION,
};
use crate::types::{Revision, methods};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: &str = "last-event-id";
const EVENT_STREAM: &str = "text/event-stream";
/// The beginning of each error response that the library encodes.
const ERROR: &[u8] = br#"{"jsonrpc":"2.0","error":"#;

/// The policy of an MCP endpoint. Created by [`StreamableHttp::policy`].
pub struct McpPolicy {
    server: McpServer,
    options: StreamableHttp,
    sessions: Arc<Sessions>,
    limits: EndpointLimits,
    /// The streams of HTTP+SSE, if the server has that transport.
    sse: Option<Arc<SseStreams>>,
}

impl McpPolicy {
    pub(super) fn new(server: McpServer, options: StreamableHttp) -> Self {
        let sessions = Sessions::new(options.session_idle, options.max_sessions);
        let sse = options.http_sse.then(|| SseStreams::new(options.max_sessions));
        let limits = EndpointLimits::new(&options);
        Self { server, options, sessions, limits, sse }
    }

    /// Opens a stream of a session.
    fn open_stream(&self, request: &Connection) -> Response<HttpBody> {
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

    fn end_session(&self, request: &Connection) -> Response<HttpBody> {
        match self.checked_session(request) {
            Ok(Some(session)) => {
                self.sessions.remove(session.id());
                status(StatusCode::NO_CONTENT)
            }
            Ok(None) => method_not_allowed(),
            Err(response) => *response,
        }
    }

    /// Returns the session of a GET or a DELETE, whose revision is checked too.
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

    /// Decides on a modern request.
    fn modern(
        &self,
        request: &mut Connection,
        incoming: &Incoming<'_>,
        params: &RequestParams<'_>,
        meta: &RequestMeta<'_>,
    ) -> MessageDecision {
        request.extensions.insert(HttpRequest::Modern);
        // The engine reports what is not a call.
        let Some(method) = incoming.method.as_deref() else { return MessageDecision::Dispatch };
        let Some(id) = incoming.id else {
            return MessageDecision::Respond(status(StatusCode::ACCEPTED));
        };
        let revisions = &self.server.settings().revisions;
        let checked = headers::check(request.headers(), method, params, meta, &self.server)
            .and_then(|()| crate::server::check_modern(meta, revisions));
        if let Err(error) = checked {
            let response = error_response(StatusCode::BAD_REQUEST, Some(id), &error);
            return MessageDecision::Respond(response);
        }
        if !accepts(request.headers(), EVENT_STREAM) {
            return MessageDecision::Dispatch;
        }
        let options = EventStreamOptions::new().keep_alive(self.options.keep_alive);
        MessageDecision::Stream(match method {
            methods::LISTEN => options.immediately(),
            _ => options,
        })
    }

    /// Decides on a message of a legacy client.
    fn legacy(&self, request: &mut Connection, incoming: &Incoming<'_>) -> MessageDecision {
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

    /// Whether a batch is allowed: only 2025-03-26 has them.
    fn allows_batch(&self, request: &Connection) -> bool {
        let session = self.session_of(request, None).ok().flatten();
        let agreed = session.as_ref().and_then(|session| session.session().agreement());
        agreed.is_some_and(|agreed| agreed.revision == Revision::V2025_03_26)
    }
}

impl HttpPolicy for McpPolicy {
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        if cors::is_preflight(request) {
            return HeadDecision::Respond(cors::preflight());
        }
        // Later, a closure of the application may add an identity that a GET would not have.
        let principal = Principal::of(request);
        request.extensions.insert(principal);
        match request.http_method() {
            Some(&Method::GET) => HeadDecision::Respond(self.open_stream(request)),
            Some(&Method::DELETE) => HeadDecision::Respond(self.end_session(request)),
            _ if !accepts(request.headers(), "application/json")
                && !accepts(request.headers(), EVENT_STREAM) =>
            {
                let reason = "accept application/json and text/event-stream";
                HeadDecision::Respond(refuse(StatusCode::NOT_ACCEPTABLE, reason))
            }
            _ => HeadDecision::Continue,
        }
    }

    fn on_message(&self, request: &mut Connection, message: &HttpMessage) -> MessageDecision {
        let sse = self.sse.as_ref();
        let posted = sse.and_then(|sse| sse.post(request, &principal(request), message.body()));
        if let Some(code) = posted {
            return MessageDecision::Respond(status(code));
        }
        if message.is_batch() {
            return self.on_batch(request, message);
        }
        let Some(incoming) = Incoming::read(message.body()) else {
            // The engine reports what is not a message.
            request.extensions.insert(HttpRequest::Unread);
            return MessageDecision::Dispatch;
        };
        let read = RequestParams::of(incoming.params);
        let read = read.and_then(|params| Ok((RequestMeta::read(&params)?, params)));
        let names_modern = names_modern_revision(request.headers());
        match read {
            Ok((meta, params)) if meta.is_modern() || names_modern => {
                self.modern(request, &incoming, &params, &meta)
            }
            Err(error) if names_modern => {
                let response =
                    error_response(StatusCode::BAD_REQUEST, incoming.request_id(), &error);
                MessageDecision::Respond(response)
            }
            _ => self.legacy(request, &incoming),
        }
    }

    fn respond(
        &self,
        request: &Connection,
        _: &HttpMessage,
        outcome: HttpOutcome,
    ) -> Response<HttpBody> {
        let Some(reply) = outcome.reply() else { return status(StatusCode::ACCEPTED) };
        let code = match reply.starts_with(ERROR) {
            true => outcome.error_codes().first().copied().flatten(),
            false => None,
        };
        if code == Some(Code::CANCELLED.0) {
            // The client has asked for no response, and HTTP needs one: a stream without events.
            return EventStream::channel(1).1.into_response();
        }
        let is_modern = matches!(request.extensions.get(), Some(HttpRequest::Modern) | None);
        let mut response = outcome.into_response();
        if let Some(status) = code.and_then(|code| status_of(code, is_modern)) {
            *response.status_mut() = status;
        }
        if let (Some(HttpRequest::NewSession(new)), None) = (request.extensions.get(), code) {
            response = self.begin_session(new, response);
        }
        cors::expose(response)
    }
}

impl McpPolicy {
    fn on_batch(&self, request: &mut Connection, message: &HttpMessage) -> MessageDecision {
        if !self.allows_batch(request) {
            let reason = "Invalid Request: batches exist only in revision 2025-03-26";
            let error = ErrorObject::new(Code::INVALID_REQUEST.0, reason);
            let response = error_response(StatusCode::BAD_REQUEST, None, &error);
            return MessageDecision::Respond(response);
        }
        match self.session_of(request, None) {
            Ok(Some(session)) => {
                deliver_all(message.body(), &session);
                request.extensions.insert(HttpRequest::Session(session.clone()));
                self.stream(request, Some(session))
            }
            Ok(None) => MessageDecision::Dispatch,
            Err(response) => MessageDecision::Respond(*response),
        }
    }

    /// Adds the session that `initialize` has begun.
    fn begin_session(
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

impl fmt::Debug for McpPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpPolicy").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Who sends a request, as its head has told.
fn principal(request: &Connection) -> Principal {
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

/// Whether the client accepts a type. One that says nothing accepts everything.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    // What the protocol requires, as most clients write it: it need not be taken apart for each request.
    const BOTH: &[u8] = b"application/json, text/event-stream";
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_some_and(|value| value.as_bytes() == BOTH) {
        return true;
    }
    if values.peek().is_none() {
        return true;
    }
    let group = wanted.split('/').next().unwrap_or_default();
    let accepts = |range: &str| {
        let range = range.split(';').next().unwrap_or_default().trim();
        range.eq_ignore_ascii_case(wanted)
            || range == "*/*"
            || range.strip_suffix("/*").is_some_and(|it| it.eq_ignore_ascii_case(group))
    };
    values.filter_map(|value| value.to_str().ok()).any(|value| value.split(',').any(accepts))
}

/// Whether the header names a modern revision, or one that nobody knows yet.
fn names_modern_revision(headers: &HeaderMap) -> bool {
    let version = headers.get(PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
    version.and_then(Revision::parse).is_some_and(Revision::is_modern)
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

/// The status of an error; `None` for 200.
fn status_of(code: i64, is_modern: bool) -> Option<StatusCode> {
    const PARSE_ERROR: i64 = Code::PARSE_ERROR.0;
    const INVALID_REQUEST: i64 = Code::INVALID_REQUEST.0;
    const METHOD_NOT_FOUND: i64 = Code::METHOD_NOT_FOUND.0;
    match code {
        PARSE_ERROR | INVALID_REQUEST => Some(StatusCode::BAD_REQUEST),
        METHOD_NOT_FOUND if is_modern => Some(StatusCode::NOT_FOUND),
        HEADER_MISMATCH | MISSING_REQUIRED_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION => {
            Some(StatusCode::BAD_REQUEST)
        }
        _ => None,
    }
}

fn status(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::default());
    *response.status_mut() = status;
    response
}

/// A response with one sentence.
fn refuse(code: StatusCode, reason: &'static str) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::from(reason));
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn method_not_allowed() -> Response<HttpBody> {
    let mut response = refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "GET and DELETE need the Mcp-Session-Id of a session; use POST",
    );
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// A response with a JSON-RPC error. Without an id, the error has none.
fn error_response(
    code: StatusCode,
    id: Option<&RawValue>,
    error: &ErrorObject,
) -> Response<HttpBody> {
    #[derive(serde::Serialize)]
    struct ErrorResponse<'a> {
        jsonrpc: &'static str,
        error: &'a ErrorObject,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a RawValue>,
    }
    let body = serde_json::to_vec(&ErrorResponse { jsonrpc: "2.0", error, id }).unwrap_or_default();
    let mut response = Response::new(HttpBody::from(Bytes::from(body)));
    *response.status_mut() = code;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
