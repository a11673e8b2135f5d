//! One request under way: the future that `tower` and hyper ask for.
//!
//! Most requests come with all of their body, and their handlers are ready: such a one is answered
//! when it is first polled, from where it is. What has to wait goes on in a future of its own, so
//! that this one, which is boxed for each call, stays as small as a request.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, decode};
use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderMap, Request, StatusCode, Version};
use http_body::Body;

use super::activity::{Activity, Busy};
use super::answer::{self, Asked, HttpResponse};
use super::body::{self, Piece};
use super::remote::Remote;
use super::service::{HttpService, Inner};
use crate::BoxFuture;
use crate::endpoint::HTTP;
use crate::engine::{Drive, ReplyBuffer};

/// What is let by of a body that nobody will look at.
const SMALL: usize = 64 * 1024;

/// A request under way.
pub(super) struct Respond<B> {
    exchange: Exchange,
    /// Until it is answered.
    busy: Option<Busy>,
    /// Until it is taken up.
    request: Option<Request<B>>,
    /// What is left of it, where it has to wait.
    rest: Option<BoxFuture<'static, HttpResponse>>,
}

/// A request whose handlers were entered.
enum Begun {
    Over(HttpResponse),
    Running(Drive, Asked),
}

/// By whom a request is served, and for whom.
#[derive(Clone)]
struct Exchange {
    inner: Arc<Inner>,
    remote: Remote,
}

impl<B> Respond<B> {
    pub(super) fn new(service: &HttpService, request: Request<B>) -> Self {
        Self {
            exchange: Exchange { inner: service.inner.clone(), remote: service.remote.clone() },
            busy: Some(service.activity.begin()),
            request: Some(request),
            rest: None,
        }
    }
}

impl<B> Future for Respond<B>
where
    B: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static,
{
    type Output = Result<HttpResponse, Infallible>;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let response = match &mut self.rest {
            None => self.begin(poller),
            Some(rest) => rest.as_mut().poll(poller),
        };
        if response.is_ready() {
            self.busy = None;
        }
        response.map(Ok)
    }
}

impl<B> Respond<B>
where
    B: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static,
{
    /// Answers at once, or sees what is to be waited for.
    fn begin(&mut self, poller: &mut Poller<'_>) -> Poll<HttpResponse> {
        let Self { exchange, request: Some(request), busy, .. } = self else {
            return Poll::Pending;
        };
        let Exchange { inner, remote } = &*exchange;
        let cors = inner.guard.cors(request.headers());
        if let Some(mut response) = inner.without_body(request, remote) {
            // A page that may call may also read why it was refused.
            if response.status().is_client_error() && response.status() != StatusCode::FORBIDDEN {
                response = with(cors, response);
            }
            if is_asking(request) {
                return Poll::Ready(response);
            }
            return self.wait(poller, |_, mut request| async move {
                body::let_by(request.body_mut(), SMALL).await;
                response
            });
        }
        let limit = inner.dispatcher.settings.limits.longest_frame();
        let announced = body::announced(request.body());
        if announced > limit && is_asking(request) {
            return Poll::Ready(with(cors, answer::too_large(limit)));
        }
        let exact = request.body().size_hint().exact();
        let come = match announced <= limit {
            true => body::poll_piece(request.body_mut(), poller),
            false => Poll::Pending,
        };
        if let Poll::Ready(Ok(Some(body))) = &come
            && (exact == Some(body.len() as u64) || request.body().is_end_stream())
            && body.len() <= limit
        {
            return match exchange.start(request, body, poller) {
                Begun::Over(response) => Poll::Ready(with(cors, response)),
                Begun::Running(drive, asked) => self.wait(poller, |exchange, _| async move {
                    with(cors, exchange.finish(drive, asked).await)
                }),
            };
        }
        // The streams of HTTP/2 share a connection, and one may stall while the others move.
        let watch = busy.as_ref().map(Busy::activity).filter(|activity| activity.watched);
        let watch = watch.filter(|_| request.version() < Version::HTTP_2).cloned();
        self.wait(poller, move |exchange, request| async move {
            with(cors, exchange.serve(request, announced, come, watch).await)
        })
    }

    /// Goes on in a future of its own.
    fn wait<F>(
        &mut self,
        poller: &mut Poller<'_>,
        rest: impl FnOnce(Exchange, Request<B>) -> F,
    ) -> Poll<HttpResponse>
    where
        F: Future<Output = HttpResponse> + Send + 'static,
    {
        let Some(request) = self.request.take() else { return Poll::Pending };
        let rest = self.rest.insert(Box::pin(rest(self.exchange.clone(), request)));
        rest.as_mut().poll(poller)
    }
}

impl Exchange {
    /// Reads the body, and serves it.
    async fn serve<B>(
        self,
        mut request: Request<B>,
        announced: usize,
        come: Poll<Piece>,
        watch: Option<Arc<Activity>>,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes, Error: Display> + Send + Unpin,
    {
        let limits = &self.inner.dispatcher.settings.limits;
        let body = body::read(request.body_mut(), announced, come, limits, watch.as_deref());
        let body = match body.await {
            Ok(body) => body,
            Err(response) => return response,
        };
        let started = poll_fn(|poller| Poll::Ready(self.start(&mut request, &body, poller)));
        match started.await {
            Begun::Over(response) => response,
            Begun::Running(drive, asked) => self.finish(drive, asked).await,
        }
    }

    /// Enters the handlers.
    fn start<B>(&self, request: &mut Request<B>, body: &Bytes, poller: &mut Poller<'_>) -> Begun {
        let Self { inner, remote } = self;
        let payload = decode(body, &inner.dispatcher.settings.rules);
        let headers = std::mem::take(request.headers_mut()).into();
        let extensions = std::mem::take(request.extensions_mut());
        let mut connection = remote.connection(HTTP, headers, extensions);
        if inner.dispatcher.settings.complete(&mut connection).is_err() {
            return Begun::Over(answer::on_connect_failed());
        }
        let asked = Asked::new(connection, &payload);
        let out = &mut ReplyBuffer::single();
        match inner.dispatcher.start(payload, None, &asked.origin, out, poller).or_drive() {
            Ok(answer) => Begun::Over(answer::answered(answer, &asked)),
            Err(drive) => Begun::Running(drive, asked),
        }
    }

    /// Drives on what waits, until it is done or a shutdown waits no longer.
    async fn finish(&self, mut drive: Drive, asked: Asked) -> HttpResponse {
        let run = poll_fn(move |poller| drive.poll(poller));
        tokio::select! {
            biased;
            answer = run => answer::answered(answer, &asked),
            () = self.inner.expired() => {
                let busy = ErrorObject::server_busy("shutting down");
                answer::error(StatusCode::SERVICE_UNAVAILABLE, busy)
            }
        }
    }
}

/// Whether a client waits to be told before it sends the body.
fn is_asking<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(EXPECT)
}

fn with(cors: Option<HeaderMap>, mut response: HttpResponse) -> HttpResponse {
    if let Some(cors) = cors {
        response.headers_mut().extend(cors);
    }
    response
}
