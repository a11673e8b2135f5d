//! One request that an [`HttpPolicy`] decides.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use antiphon_core::{Payload, decode};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, EXPECT, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Request};
use http_body::Body;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::activity::RequestActivity;
use super::event_stream::EVENT_STREAM;
use super::http_message::HttpMessage;
use super::policy::{HeadDecision, HttpOutcome, HttpPolicy, MessageDecision};
use super::refusal::HttpRefusal;
use super::request_body;
use super::request_future::{DISCARDED, RequestExchange, with};
use super::response::{Dispatched, HttpResponse, tap_reply};
use super::rules::{self, RuleHeaders};
use super::service_state::{Route, ServiceState};
use crate::catch_unwind::{Panicked, guarded};
use crate::connection::Connection;
use crate::context::Origin;
use crate::engine::{Drive, ReplyBuffer};
use crate::layer::BoxError;
use crate::peer::ConnectionRegistry;
use crate::tap::Direction;

/// A policy whose panics become status 500, and whose streams end when the server stops.
#[derive(Clone)]
pub(super) struct GuardedPolicy {
    policy: Arc<dyn HttpPolicy>,
    peers: Option<ConnectionRegistry>,
}

impl GuardedPolicy {
    /// The policy of a service, if it has one.
    pub(super) fn of(state: &ServiceState) -> Option<Self> {
        let policy = state.http.policy.clone()?;
        Some(Self { policy, peers: state.peers.clone() })
    }

    fn call<T>(&self, call: impl FnOnce(&dyn HttpPolicy) -> T, failed: impl FnOnce() -> T) -> T {
        guarded("the HTTP policy", || call(&*self.policy)).unwrap_or_else(|Panicked| failed())
    }

    pub(super) fn respond(
        &self,
        request: &Connection,
        message: &HttpMessage,
        outcome: HttpOutcome,
    ) -> HttpResponse {
        self.until_stopped(self.call(|policy| policy.respond(request, message, outcome), failed))
    }

    pub(super) fn refuse(&self, request: &Connection, refusal: HttpRefusal) -> HttpResponse {
        self.until_stopped(self.call(|policy| policy.refuse(request, refusal), failed))
    }

    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        match self.call(|policy| policy.on_head(request), || HeadDecision::Respond(failed())) {
            HeadDecision::Respond(response) => HeadDecision::Respond(self.until_stopped(response)),
            decision => decision,
        }
    }

    fn on_message(&self, request: &mut Connection, message: &HttpMessage) -> MessageDecision {
        let failed = || MessageDecision::Respond(failed());
        match self.call(|policy| policy.on_message(request, message), failed) {
            MessageDecision::Respond(response) => {
                MessageDecision::Respond(self.until_stopped(response))
            }
            decision => decision,
        }
    }

    /// Ends a stream of events that the policy has opened when the server stops, after the events that
    /// are queued. A shutdown would wait for it in vain.
    fn until_stopped(&self, response: HttpResponse) -> HttpResponse {
        let Some(peers) = &self.peers else { return response };
        let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        match content_type.map(rules::essence) {
            Some(essence) if essence.eq_ignore_ascii_case(EVENT_STREAM) => {
                response.map(|body| body.until(peers.stopping()))
            }
            _ => response,
        }
    }
}

fn failed() -> HttpResponse {
    HttpRefusal::Failed.into_response()
}

impl RequestExchange {
    /// Serves a request by the policy of the service.
    pub(super) async fn serve_by_policy<B>(
        self,
        mut request: Request<B>,
        watch: Option<Arc<RequestActivity>>,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let Some(policy) = GuardedPolicy::of(&self.state) else {
            return failed();
        };
        let headers = RuleHeaders::of(request.headers());
        let mut route = self.state.route(&request, &headers, &self.remote);
        // The fallback and a WebSocket need the whole request.
        let is_kept = self.state.http.fallback.is_some() || request.headers().contains_key(UPGRADE);
        let mut connection = match is_kept {
            true => self.connection(copy_head(&request)),
            false => self.connection(take_head(&mut request)),
        };
        let mut decided = None;
        if let Route::Message = route {
            match policy.on_head(&mut connection) {
                HeadDecision::Respond(response) => decided = Some(response),
                decision => route = self.route_by_policy(&decision, &connection, &mut request),
            }
        }
        let cors = self.state.cors(&route, connection.headers());
        let limits = &self.state.dispatcher.settings.limits;
        let fits = rules::fits(request_body::known_length(request.body()), limits);
        let response = match (route, decided, fits) {
            (Route::Fallback, ..) => return self.fall_back(request, watch).await,
            (Route::Message, None, Ok(())) => {
                let serving = self.serve_message(policy, connection, request, watch);
                return with(cors, serving.await);
            }
            (_, Some(response), _) => response,
            (Route::Respond(response), ..) => *response,
            (Route::Message, _, Err(refusal)) | (Route::Refuse(refusal), ..) => {
                policy.refuse(&connection, refusal)
            }
        };
        if !connection.headers().contains_key(EXPECT) {
            request_body::discard(request.into_body(), DISCARDED);
        }
        with(cors, response)
    }

    /// Reads the body of a message and serves it.
    async fn serve_message<B>(
        self,
        policy: GuardedPolicy,
        mut connection: Connection,
        request: Request<B>,
        watch: Option<Arc<RequestActivity>>,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let limits = &self.state.dispatcher.settings.limits;
        let body = request_body::read(request.into_body(), Poll::Pending, limits, watch);
        let admitted = body.await.and_then(|body| Ok((body, self.state.admit()?)));
        let (body, admitted) = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => return policy.refuse(&connection, refusal),
        };
        if self.state.dispatcher.settings.complete(&mut connection).is_err() {
            return policy.refuse(&connection, HttpRefusal::Failed);
        }
        let tap = &self.state.dispatcher.settings.tap;
        tap.message(Direction::Received, &body, &connection);
        let message = HttpMessage::new(body, limits.batch_entries);
        match policy.on_message(&mut connection, &message) {
            MessageDecision::Dispatch => self.dispatch(policy, connection, message, admitted).await,
            MessageDecision::Stream(options) => {
                self.stream(policy, connection, message, options, admitted).await
            }
            MessageDecision::Respond(response) => response,
        }
    }

    /// Decides on a head that the policy has not answered. The policy may replace the rules of method
    /// and content type.
    fn route_by_policy<B>(
        &self,
        decision: &HeadDecision,
        connection: &Connection,
        request: &mut Request<B>,
    ) -> Route {
        if request.headers().contains_key(UPGRADE) {
            *request.extensions_mut() = connection.extensions.clone();
        }
        match (self.state.upgrade(request, &self.remote), decision) {
            (Route::Message, HeadDecision::Continue) => {
                let method = connection.http_method().cloned().unwrap_or_default();
                let headers = connection.headers();
                self.state.check_message(&method, headers, RuleHeaders::of(headers).is_json())
            }
            (route, _) => route,
        }
    }

    /// Runs the handlers of a message that cannot notify the caller.
    async fn dispatch(
        self,
        policy: GuardedPolicy,
        connection: Connection,
        message: HttpMessage,
        admitted: Option<TaskTrackerToken>,
    ) -> HttpResponse {
        let payload = decode(message.body(), &self.state.dispatcher.settings.rules);
        let dispatched = Dispatched::new(connection, &payload, admitted);
        let request = dispatched.origin.connection();
        let reply = match self.enter(payload, &dispatched.origin).await {
            Ok(reply) => reply,
            Err(mut drive) => tokio::select! {
                biased;
                reply = poll_fn(|poller| drive.poll(poller)) => reply,
                () = self.state.expired() => {
                    return policy.refuse(request, HttpRefusal::ShuttingDown);
                }
            },
        };
        tap_reply(&self.state.dispatcher.settings.tap, reply.as_ref(), &dispatched.origin);
        policy.respond(request, &message, HttpOutcome::new(reply, dispatched.challenge()))
    }

    /// Enters the handlers. Returns the reply if no handler waits.
    pub(super) async fn enter(
        &self,
        payload: Payload,
        origin: &Origin,
    ) -> Result<Option<Bytes>, Drive> {
        let mut payload = Some(payload);
        poll_fn(|poller| {
            let Some(payload) = payload.take() else { return Poll::Pending };
            let out = &mut ReplyBuffer::single();
            let started = self.state.dispatcher.start(payload, None, origin, out, poller);
            Poll::Ready(started.or_drive())
        })
        .await
    }
}

/// The response to a request that fails outside the service, in a layer or in the fallback.
pub(super) struct FailedResponse(Option<(GuardedPolicy, Connection)>);

impl FailedResponse {
    /// Keeps the head of a request if a policy needs it.
    pub(super) fn new<B>(exchange: &RequestExchange, request: &Request<B>) -> Self {
        Self(
            GuardedPolicy::of(&exchange.state)
                .map(|policy| (policy, exchange.connection(copy_head(request)))),
        )
    }

    pub(super) fn into_response(self) -> HttpResponse {
        match self.0 {
            Some((policy, request)) => policy.refuse(&request, HttpRefusal::Failed),
            None => failed(),
        }
    }
}

/// A copy of the head of a request.
fn copy_head<B>(request: &Request<B>) -> Parts {
    let mut copy = Request::new(());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    copy.into_parts().0
}

/// Takes the head out of a request. The body stays.
fn take_head<B>(request: &mut Request<B>) -> Parts {
    let mut head = Request::new(());
    std::mem::swap(head.method_mut(), request.method_mut());
    std::mem::swap(head.uri_mut(), request.uri_mut());
    std::mem::swap(head.headers_mut(), request.headers_mut());
    std::mem::swap(head.extensions_mut(), request.extensions_mut());
    head.into_parts().0
}
