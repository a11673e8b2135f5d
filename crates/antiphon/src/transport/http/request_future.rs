//! One request as a future.
//!
//! Most requests arrive with their whole body, and their handlers never wait: such a request is served
//! by the first poll, in place. The rest of any other request is a future of its own, so that this
//! one, which is boxed for each call, stays as small as a request.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::decode;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Version};
use http_body::Body;

use super::activity::{ActiveRequest, RequestActivity};
use super::http_body::HttpBody;
use super::policy_exchange::FailedResponse;
use super::refusal::HttpRefusal;
use super::remote::Remote;
use super::request_body::{self, BodyChunk};
use super::response::{self, Dispatched, HttpResponse};
use super::rules::{self, RuleHeaders};
use super::service::HttpService;
use super::service_state::{Route, ServiceState};
use crate::BoxFuture;
use crate::connection::{Connection, HttpHead, HttpRequestHead};
use crate::endpoint::HTTP;
use crate::engine::{Drive, ReplyBuffer};
use crate::layer::BoxError;
use crate::tap::Direction;

/// The bytes of a refused body that are read and dropped.
pub(super) const DISCARDED: usize = 64 * 1024;

/// A request in flight.
pub(super) struct RequestFuture<B> {
    exchange: RequestExchange,
    /// Until the response is there. Behind layers, the layered request is the active one: a layer may
    /// leave the body of this response unread.
    active: Option<ActiveRequest>,
    /// Until the first poll, or until the rest takes it.
    request: Option<Request<B>>,
    /// The rest of a request that has to wait.
    rest: Option<BoxFuture<'static, HttpResponse>>,
    version: Version,
}

/// A request whose handlers were entered.
enum StartedRequest {
    /// The reply, if the message has one.
    Done(Option<Bytes>, Dispatched),
    Running(Drive, Dispatched),
    Refused(HttpRefusal),
}

/// The service of a request, and its client.
#[derive(Clone)]
pub(super) struct RequestExchange {
    pub(super) state: Arc<ServiceState>,
    pub(super) remote: Remote,
}

impl<B> RequestFuture<B> {
    pub(super) fn new(service: &HttpService, request: Request<B>) -> Self {
        let active = Some(service.activity.begin());
        Self { active, ..Self::behind_layers(service, request) }
    }

    /// A request that is active already.
    pub(super) fn behind_layers(service: &HttpService, request: Request<B>) -> Self {
        let (exchange, version) = (RequestExchange::new(service), request.version());
        Self { exchange, active: None, request: Some(request), rest: None, version }
    }
}

impl<B> Future for RequestFuture<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    type Output = Result<HttpResponse, Infallible>;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut response = match &mut self.rest {
            None => self.begin(poller),
            Some(rest) => rest.as_mut().poll(poller),
        };
        if let Poll::Ready(response) = &mut response {
            if let Some(active) = self.active.take() {
                response.body_mut().hold_active(active);
            }
            self.exchange.state.close_if_stopping(self.version, response);
        }
        response.map(Ok)
    }
}

impl<B> RequestFuture<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    /// Responds at once, or starts the rest.
    fn begin(&mut self, poller: &mut Poller<'_>) -> Poll<HttpResponse> {
        let Self { exchange, request: Some(request), active, .. } = self else {
            return Poll::Pending;
        };
        if exchange.state.http.policy.is_some() {
            let (watch, is_head) = (watch(active.as_ref(), request), needs_no_body(request));
            return self.wait(poller, move |exchange, request| async move {
                for_head(is_head, exchange.serve_by_policy(request, watch).await)
            });
        }
        let route = exchange.route(request);
        let cors = exchange.state.cors(&route, request.headers());
        match route {
            Route::Message => self.begin_message(cors, poller),
            Route::Fallback => {
                let (watch, is_head) = (watch(active.as_ref(), request), needs_no_body(request));
                self.wait(poller, move |exchange, request| async move {
                    for_head(is_head, exchange.fall_back(request, watch).await)
                })
            }
            Route::Respond(response) => Poll::Ready(with(cors, self.respond_early(*response))),
            Route::Refuse(refusal) => {
                Poll::Ready(with(cors, self.respond_early(refusal.into_response())))
            }
        }
    }

    /// Enters the handlers if the whole body has arrived, and otherwise starts the rest.
    fn begin_message(
        &mut self,
        cors: Option<HeaderMap>,
        poller: &mut Poller<'_>,
    ) -> Poll<HttpResponse> {
        let Self { exchange, request: Some(request), active, .. } = self else {
            return Poll::Pending;
        };
        let limits = &exchange.state.dispatcher.settings.limits;
        let exact = request.body().size_hint().exact();
        let first_poll = match rules::fits(request_body::known_length(request.body()), limits) {
            Ok(()) => request_body::poll_chunk(request.body_mut(), poller),
            Err(refusal) if expects_continue(request) => {
                return Poll::Ready(with(cors, refusal.into_response()));
            }
            Err(refusal) => Poll::Ready(Err(refusal)),
        };
        if let Poll::Ready(Ok(Some(body))) = &first_poll
            && (exact == Some(body.len() as u64) || request.body().is_end_stream())
            && rules::fits(body.len(), limits).is_ok()
        {
            return self.enter_handlers(body, cors, poller);
        }
        let watch = watch(active.as_ref(), request);
        self.wait(poller, move |exchange, request| async move {
            with(cors, exchange.serve(request, first_poll, watch).await)
        })
    }

    /// Enters the handlers of a message that has arrived.
    #[inline]
    fn enter_handlers(
        &mut self,
        body: &Bytes,
        cors: Option<HeaderMap>,
        poller: &mut Poller<'_>,
    ) -> Poll<HttpResponse> {
        let Some((head, _)) = self.request.take().map(Request::into_parts) else {
            return Poll::Pending;
        };
        let exchange = &self.exchange;
        match exchange.start(head, body, poller) {
            StartedRequest::Done(reply, dispatched) => {
                Poll::Ready(with(cors, exchange.respond(reply, &dispatched)))
            }
            StartedRequest::Running(drive, dispatched) => {
                let exchange = exchange.clone();
                self.go_on(
                    poller,
                    async move { with(cors, exchange.finish(drive, dispatched).await) },
                )
            }
            StartedRequest::Refused(refusal) => Poll::Ready(with(cors, refusal.into_response())),
        }
    }

    /// Responds to a request whose body is not read.
    fn respond_early(&mut self, response: HttpResponse) -> HttpResponse {
        let Some(request) = self.request.take() else { return response };
        let response = for_head(needs_no_body(&request), response);
        if !expects_continue(&request) {
            request_body::discard(request.into_body(), DISCARDED);
        }
        response
    }

    /// Goes on with the request in a future of its own.
    fn wait<F>(
        &mut self,
        poller: &mut Poller<'_>,
        rest: impl FnOnce(RequestExchange, Request<B>) -> F,
    ) -> Poll<HttpResponse>
    where
        F: Future<Output = HttpResponse> + Send + 'static,
    {
        let Some(request) = self.request.take() else { return Poll::Pending };
        let rest = rest(self.exchange.clone(), request);
        self.go_on(poller, rest)
    }

    fn go_on(
        &mut self,
        poller: &mut Poller<'_>,
        rest: impl Future<Output = HttpResponse> + Send + 'static,
    ) -> Poll<HttpResponse> {
        self.rest.insert(Box::pin(rest)).as_mut().poll(poller)
    }
}

impl RequestExchange {
    pub(super) fn new(service: &HttpService) -> Self {
        Self { state: service.state.clone(), remote: service.remote.clone() }
    }

    /// Decides by the head which part of the service takes a request.
    fn route<B>(&self, request: &mut Request<B>) -> Route {
        let Self { state, remote } = self;
        let headers = RuleHeaders::of(request.headers());
        let is_json = headers.is_json();
        match state.route(request, &headers, remote) {
            Route::Message => {}
            other => return other,
        }
        match state.upgrade(request, remote) {
            Route::Message => state.check_message(request.method(), request.headers(), is_json),
            other => other,
        }
    }

    /// Reads the body and serves the message.
    async fn serve<B>(
        self,
        request: Request<B>,
        first_poll: Poll<BodyChunk>,
        watch: Option<Arc<RequestActivity>>,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let limits = &self.state.dispatcher.settings.limits;
        let (head, body) = request.into_parts();
        let body = match request_body::read(body, first_poll, limits, watch).await {
            Ok(body) => body,
            Err(refusal) => return refusal.into_response(),
        };
        let mut head = Some(head);
        let entered = poll_fn(|poller| match head.take() {
            Some(head) => Poll::Ready(self.start(head, &body, poller)),
            None => Poll::Pending,
        });
        match entered.await {
            StartedRequest::Done(reply, dispatched) => self.respond(reply, &dispatched),
            StartedRequest::Running(drive, dispatched) => self.finish(drive, dispatched).await,
            StartedRequest::Refused(refusal) => refusal.into_response(),
        }
    }

    /// Returns the properties of a request with this head.
    #[inline]
    pub(super) fn connection(&self, head: Parts) -> Connection {
        let Parts { method, uri, headers, extensions, .. } = head;
        let target = uri.into_parts().path_and_query;
        let head = HttpHead::Parsed(HttpRequestHead { method, target, headers });
        self.remote.connection(HTTP, head, extensions)
    }

    /// Enters the handlers.
    #[inline]
    fn start(&self, head: Parts, body: &Bytes, poller: &mut Poller<'_>) -> StartedRequest {
        let admitted = match self.state.admit() {
            Ok(admitted) => admitted,
            Err(refusal) => return StartedRequest::Refused(refusal),
        };
        let dispatcher = &self.state.dispatcher;
        let payload = decode(body, &dispatcher.settings.rules);
        let mut connection = self.connection(head);
        if dispatcher.settings.complete(&mut connection).is_err() {
            return StartedRequest::Refused(HttpRefusal::Failed);
        }
        dispatcher.settings.tap.message(Direction::Received, body, &connection);
        let dispatched = Dispatched::new(connection, &payload, admitted);
        let out = &mut ReplyBuffer::single();
        match dispatcher.start(payload, None, &dispatched.origin, out, poller).or_drive() {
            Ok(reply) => StartedRequest::Done(reply, dispatched),
            Err(drive) => StartedRequest::Running(drive, dispatched),
        }
    }

    /// Drives the handlers until they are done or the shutdown timeout has passed.
    async fn finish(&self, mut drive: Drive, dispatched: Dispatched) -> HttpResponse {
        let run = poll_fn(move |poller| drive.poll(poller));
        tokio::select! {
            biased;
            reply = run => self.respond(reply, &dispatched),
            () = self.state.expired() => HttpRefusal::ShuttingDown.into_response(),
        }
    }

    /// The response to a message, by its reply.
    #[inline]
    fn respond(&self, reply: Option<Bytes>, dispatched: &Dispatched) -> HttpResponse {
        let tap = &self.state.dispatcher.settings.tap;
        response::tap_reply(tap, reply.as_ref(), &dispatched.origin);
        response::reply(reply, dispatched.challenge())
    }

    /// Passes a request to the fallback.
    pub(super) async fn fall_back<B>(
        self,
        request: Request<B>,
        watch: Option<Arc<RequestActivity>>,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let Some(fallback) = &self.state.http.fallback else {
            return HttpRefusal::NotFound.into_response();
        };
        let failed = FailedResponse::new(&self, &request);
        let limits = &self.state.dispatcher.settings.limits;
        let request = request.map(|body| request_body::timed(body, limits, watch));
        let responding = fallback.call(request);
        responding.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the fallback failed an HTTP request");
            failed.into_response()
        })
    }
}

fn watch<B>(active: Option<&ActiveRequest>, request: &Request<B>) -> Option<Arc<RequestActivity>> {
    active?.activity().watch(request.version())
}

/// Whether the response must have no body: hyper removes it from responses to HEAD only over HTTP/1 (RFC 9113, 8.1.1).
fn needs_no_body<B>(request: &Request<B>) -> bool {
    request.method() == Method::HEAD && request.version() == Version::HTTP_2
}

/// Removes the body of a response to HEAD, and keeps its length as a header.
fn for_head(is_head: bool, mut response: HttpResponse) -> HttpResponse {
    if is_head {
        if let Some(length) = response.body().size_hint().exact() {
            response.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| length.into());
        }
        *response.body_mut() = HttpBody::default();
    }
    response
}

/// Whether the client waits for `100 Continue` before it sends the body.
fn expects_continue<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(EXPECT)
}

#[inline]
pub(super) fn with(cors: Option<HeaderMap>, mut response: HttpResponse) -> HttpResponse {
    if let Some(cors) = cors {
        response.headers_mut().extend(cors);
    }
    response
}
