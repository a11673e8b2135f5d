//! What the policy has found out about a request, for the handler.

use std::sync::Arc;

use antiphon::transport::http::EventSender;
use antiphon::{BoxFuture, Code, Context, ErrorObject, Invocation, Outcome};

use super::http_session::HttpSession;
use super::resumable_stream::ResumableStream;
use crate::McpServer;
use crate::server::Session;

/// The request that a call came in.
#[derive(Clone)]
pub(crate) enum HttpRequest {
    /// It stands for itself. Its headers are checked.
    Modern,
    /// The policy could not read it, so it cannot be served, whatever the engine reads.
    Unread,
    /// A legacy request of a server without sessions.
    Stateless(Arc<Session>),
    /// A request of a session.
    Session(Arc<HttpSession>),
    /// A stream of HTTP+SSE: a connection of a legacy client.
    Sse,
    /// `initialize`, whose session begins with its response.
    NewSession(Arc<HttpSession>),
}

impl HttpRequest {
    /// The session of a legacy client, if the request belongs to one.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Session(session) => Some(session.session()),
            _ => None,
        }
    }

    pub(crate) fn serve(
        self,
        server: &McpServer,
        call: Invocation,
        cx: Context,
    ) -> BoxFuture<'static, Outcome> {
        match self {
            Self::Modern => server.serve_request(call, cx, None),
            // The handler of its connection serves a stream.
            Self::Unread | Self::Sse => {
                let error = ErrorObject::invalid_request().with_data("the message is not readable");
                Box::pin(std::future::ready(Err(error)))
            }
            Self::Stateless(session) => server.serve_request(call, cx, Some(&session)),
            Self::NewSession(new) => server.serve_request(call, cx, Some(new.session())),
            Self::Session(session) => in_session(&session, server, call, cx),
        }
    }
}

/// Whether a request with modern metadata may be served: over HTTP, only if the policy has checked its headers. A batch
/// has none that could match, and nobody compares those of a message for a stream of HTTP+SSE.
pub(crate) fn may_be_modern(cx: &Context) -> bool {
    matches!(cx.extensions().get(), None | Some(HttpRequest::Modern))
}

/// Serves a call of a session, which a later POST can cancel.
fn in_session(
    session: &Arc<HttpSession>,
    server: &McpServer,
    call: Invocation,
    cx: Context,
) -> BoxFuture<'static, Outcome> {
    let id = cx.id().map_or("", |id| id.as_str());
    let running = match session.begin_call(id) {
        Ok(running) => running,
        Err(error) => return Box::pin(std::future::ready(Err(error))),
    };
    let serving = server.serve_request(call, cx, Some(session.session()));
    Box::pin(async move {
        tokio::select! {
            biased;
            outcome = serving => outcome,
            () = running.cancelled() => Err(ErrorObject::new(Code::CANCELLED.0, "cancelled")),
        }
    })
}

/// Closes the event stream of a request, whose client resumes it. Returns false if it has none.
pub(crate) fn close_stream(cx: &Context) -> bool {
    let stream = cx.extensions().get::<ResumableStream>();
    let sender = cx.extensions().get::<EventSender>();
    match (stream, sender) {
        (Some(stream), Some(sender)) => stream.close(sender),
        _ => false,
    }
}
