//! The HTTP policy: finds the era and the session of each request, and the status of each response.

use std::fmt;
use std::sync::Arc;

use antiphon::http::{HeaderMap, Method, Response, StatusCode};
use antiphon::transport::http::{
    EventStream, EventStreamOptions, HeadDecision, HttpBody, HttpMessage, HttpOutcome, HttpPolicy,
    MessageDecision,
};
use antiphon::{Code, Connection};

use super::accept::{EVENT_STREAM, accepts};
use super::cors;
use super::endpoint_limits::EndpointLimits;
use super::headers::{self, PROTOCOL_VERSION};
use super::http_session::Principal;
use super::http_sse::SseStreams;
use super::incoming::Incoming;
use super::legacy::principal;
use super::options::StreamableHttp;
use super::request::HttpRequest;
use super::responses::{error_response, refuse, status, status_of};
use super::sessions::Sessions;
use crate::McpServer;
use crate::server::{RequestMeta, RequestParams};
use crate::types::{Revision, methods};

/// The beginning of each error response that the library encodes.
const ERROR: &[u8] = br#"{"jsonrpc":"2.0","error":"#;

/// The policy of an MCP endpoint. Created by [`StreamableHttp::policy`].
pub struct McpPolicy {
    pub(super) server: McpServer,
    pub(super) options: StreamableHttp,
    pub(super) sessions: Arc<Sessions>,
    pub(super) limits: EndpointLimits,
    /// The streams of HTTP+SSE, if the server has that transport.
    pub(super) sse: Option<Arc<SseStreams>>,
}

impl McpPolicy {
    pub(super) fn new(server: McpServer, options: StreamableHttp) -> Self {
        let sessions = Sessions::new(options.session_idle, options.max_sessions);
        let sse = options.http_sse.then(|| SseStreams::new(&options));
        let limits = EndpointLimits::new(&options);
        Self { server, options, sessions, limits, sse }
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
}

impl HttpPolicy for McpPolicy {
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        if cors::is_preflight(request) {
            return HeadDecision::Respond(cors::preflight());
        }
        // Later, a closure of the application may add an identity that a GET would not have.
        let principal = Principal::of(request);
        if principal != Principal::default() {
            request.extensions.insert(principal);
        }
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

impl fmt::Debug for McpPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpPolicy").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Whether the header names a modern revision, or one that nobody knows yet.
fn names_modern_revision(headers: &HeaderMap) -> bool {
    let version = headers.get(PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
    version.and_then(Revision::parse).is_some_and(Revision::is_modern)
}
