//! The server as the handler of duplex connections: stdio, TCP, Unix sockets, WebSockets.
//!
//! A connection has one legacy session, which `initialize` begins. Modern requests on the same connection do not know
//! it.

use std::sync::Arc;

use antiphon::{BoxFuture, Context, ErrorObject, Handler, Invocation, Outcome, Peer};
use tokio::sync::Semaphore;

use super::McpServer;
use super::session::{Agreement, NoLink, PeerLink, Session};
use crate::http::HttpRequest;
use crate::types::methods;

impl Handler for McpServer {
    /// Serves a request over HTTP, whose session the HTTP policy has found.
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        match cx.extensions().get::<HttpRequest>() {
            Some(request) => request.clone().serve(self, call, cx),
            // A transport without a policy: the client can be neither called nor told.
            None => self.serve_request(call, cx, Some(&Arc::new(Session::new(NoLink)))),
        }
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        let request = cx.extensions().get::<HttpRequest>();
        self.notified(&notification, request.and_then(HttpRequest::session))
    }

    fn for_connection(&self, peer: &Peer) -> Option<Arc<dyn Handler>> {
        let session = Arc::new(Session::new(PeerLink::new(peer.clone())));
        let subscriptions = Arc::new(Semaphore::new(MAX_SUBSCRIPTIONS));
        Some(Arc::new(ConnectionHandler { server: self.clone(), session, subscriptions }))
    }
}

/// The handler of one connection.
struct ConnectionHandler {
    server: McpServer,
    session: Arc<Session>,
    subscriptions: Arc<Semaphore>,
}

/// The most `subscriptions/listen` of one connection. They do not end by themselves: if they took all places of
/// [`Limits::in_flight`](antiphon::Limits::in_flight), nothing more would be read, not even the end of the connection.
const MAX_SUBSCRIPTIONS: usize = 256;

impl Handler for ConnectionHandler {
    fn accepts_batches(&self) -> bool {
        self.session.agreement().is_some_and(Agreement::allows_batches)
    }

    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        if call.method.as_str() != methods::LISTEN {
            return self.server.serve_request(call, cx, Some(&self.session));
        }
        let Ok(place) = self.subscriptions.clone().try_acquire_owned() else {
            let busy = ErrorObject::server_busy("too many subscriptions of this connection");
            return Box::pin(std::future::ready(Err(busy)));
        };
        let serving = self.server.serve_request(call, cx, Some(&self.session));
        Box::pin(async move {
            let outcome = serving.await;
            drop(place);
            outcome
        })
    }

    fn notify(&self, notification: Invocation, _: Context) -> BoxFuture<'static, ()> {
        self.server.notified(&notification, Some(&self.session))
    }
}

impl McpServer {
    /// Takes a notification. None of them changes the server: the connection itself handles cancellations.
    fn notified(
        &self,
        notification: &Invocation,
        session: Option<&Arc<Session>>,
    ) -> BoxFuture<'static, ()> {
        let method = notification.method.as_str();
        log_unknown(method);
        let may_concern_roots = [methods::INITIALIZED, methods::ROOTS_CHANGED].contains(&method);
        let begun = session.filter(|it| may_concern_roots && it.agreement().is_some());
        let listening = begun.and_then(|session| {
            let server = session.own_server().unwrap_or(self);
            Some(server.settings().roots_listener.as_ref()?.changed(session))
        });
        listening.unwrap_or_else(|| Box::pin(std::future::ready(())))
    }
}

fn log_unknown(method: &str) {
    let is_known =
        [methods::INITIALIZED, methods::ROOTS_CHANGED, methods::CANCELLED].contains(&method);
    if !is_known {
        let method: String = method.chars().take(64).collect();
        tracing::debug!(method, "an unknown notification is ignored");
    }
}
