//! The state that all requests of a service share, and the part of it that takes a request.
//!
//! The head of a request decides its route: a refusal, a page, the fallback, a WebSocket, or a message. Nothing
//! here reads a body.

use std::sync::Arc;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::refusal::HttpRefusal;
use super::remote::Remote;
use super::response::{self, HttpResponse};
use super::rules::RuleHeaders;
use super::settings::{HttpSettings, TextPage};
use crate::engine::Dispatcher;
use crate::peer::ConnectionRegistry;

/// The parts of a service that all its connections share.
#[derive(Clone)]
pub(super) struct ServiceState {
    pub(super) dispatcher: Dispatcher,
    pub(super) http: HttpSettings,
    /// The only path of the service; `None` for every path.
    pub(super) path: Option<String>,
    pub(super) websocket_only: bool,
    /// The registry that ends WebSockets at shutdown.
    pub(super) peers: Option<ConnectionRegistry>,
    /// Another server accepts the connections, so a shutdown must wait for requests too.
    pub(super) is_mounted: bool,
}

/// The part of the service that takes a request, by its head.
pub(super) enum Route {
    /// A response that needs no body.
    Respond(Box<HttpResponse>),
    Refuse(HttpRefusal),
    /// The request is not for the service.
    Fallback,
    /// The body may be a message.
    Message,
}

impl ServiceState {
    /// Checks Host, Origin and path.
    #[inline]
    pub(super) fn route<B>(
        &self,
        request: &Request<B>,
        headers: &RuleHeaders<'_>,
        remote: &Remote,
    ) -> Route {
        if self.mounted().is_some_and(ConnectionRegistry::is_stopping) {
            return Route::Refuse(HttpRefusal::ShuttingDown);
        }
        let is_required = self.http.guard.names_hosts() || remote.is_connected();
        if let Err(refusal) = headers
            .one_host(request.version(), is_required)
            .and_then(|()| self.http.guard.check(request.uri(), headers))
        {
            return Route::Refuse(refusal);
        }
        if let Some(page) = self.page(request) {
            let page = response::page(page.content_type.clone(), (page.text)());
            return Route::Respond(Box::new(page));
        }
        match self.serves_path(request.uri().path()) {
            true => Route::Message,
            false if self.http.fallback.is_some() => Route::Fallback,
            false => Route::Refuse(HttpRefusal::NotFound),
        }
    }

    /// The registry of a service that another server serves.
    #[inline]
    fn mounted(&self) -> Option<&ConnectionRegistry> {
        self.peers.as_ref().filter(|_| self.is_mounted)
    }

    /// Admits a message before its handler starts. The shutdown of a mounted service waits until the token
    /// is dropped, and admits nothing once it has begun.
    #[inline]
    pub(super) fn admit(&self) -> Result<Option<TaskTrackerToken>, HttpRefusal> {
        match self.mounted() {
            None => Ok(None),
            Some(peers) => peers.try_hold().map(Some).ok_or(HttpRefusal::ShuttingDown),
        }
    }

    /// Asks the client to close its connection once the shutdown of a mounted service has begun: it would
    /// send its next requests by it too. The server of a service that is not mounted does so by itself.
    /// HTTP/2 forbids the header (RFC 9113, section 8.2.2).
    #[inline]
    pub(super) fn close_if_stopping(&self, version: Version, response: &mut HttpResponse) {
        if self.mounted().is_some_and(ConnectionRegistry::is_stopping)
            && version <= Version::HTTP_11
            && response.status() != StatusCode::SWITCHING_PROTOCOLS
        {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }

    /// The headers that allow a page of an allowed origin to read the response, by the route of the
    /// request. Text pages and the fallback get none, and a preflight has its own.
    #[inline]
    pub(super) fn cors(&self, route: &Route, request: &HeaderMap) -> Option<HeaderMap> {
        let is_readable = match route {
            Route::Message => true,
            // A page that may call may also read why it was refused.
            Route::Refuse(HttpRefusal::Forbidden(_)) | Route::Respond(_) | Route::Fallback => false,
            Route::Refuse(refusal) => refusal.status().is_client_error(),
        };
        if is_readable { self.http.guard.cors(request) } else { None }
    }

    /// Accepts a WebSocket if the request asks for one.
    #[cfg_attr(
        not(feature = "ws"),
        expect(unused_variables, reason = "without WebSockets, there is nothing to accept")
    )]
    pub(super) fn upgrade<B>(self: &Arc<Self>, request: &mut Request<B>, remote: &Remote) -> Route {
        #[cfg(feature = "ws")]
        if request.method() != Method::POST && super::upgrade::is_wanted(request.headers()) {
            return super::upgrade::accept(request, self, remote)
                .map_or_else(Route::Refuse, |response| Route::Respond(Box::new(response)));
        }
        match self.websocket_only {
            true if self.http.fallback.is_some() => Route::Fallback,
            true => Route::Refuse(HttpRefusal::UpgradeRequired),
            false => Route::Message,
        }
    }

    /// Checks the method and content type of a message.
    #[inline]
    pub(super) fn check_message(
        &self,
        method: &Method,
        headers: &HeaderMap,
        is_json: bool,
    ) -> Route {
        if method == Method::OPTIONS
            && let Some(headers) = self.http.guard.preflight(headers)
        {
            let response = response::with_headers(StatusCode::NO_CONTENT, headers);
            return Route::Respond(Box::new(response));
        }
        if method != Method::POST {
            let is_read = [Method::GET, Method::HEAD].contains(method);
            return match self.http.fallback {
                Some(_) if is_read => Route::Fallback,
                None if is_read && self.dispatcher.settings.answers_get() => Route::Respond(
                    Box::new(response::with_headers(StatusCode::OK, HeaderMap::new())),
                ),
                _ => Route::Refuse(HttpRefusal::MethodNotAllowed),
            };
        }
        match is_json {
            true => Route::Message,
            false => Route::Refuse(HttpRefusal::UnsupportedMediaType),
        }
    }

    /// Whether this path is the service's. A fallback takes all others, and without one a service
    /// without a path takes all.
    pub(super) fn serves_path(&self, path: &str) -> bool {
        match &self.path {
            Some(own) => own == path,
            None => self.http.fallback.is_none() || path == "/",
        }
    }

    /// The page at the path of the request. A WebSocket begins with a GET too, and may begin anywhere.
    fn page<B>(&self, request: &Request<B>) -> Option<&TextPage> {
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        if !is_read || request.headers().contains_key(UPGRADE) {
            return None;
        }
        self.http.pages.iter().find(|page| page.path == request.uri().path())
    }

    /// Ready when the shutdown timeout has passed.
    pub(super) fn expired(&self) -> impl Future<Output = ()> + Send + 'static {
        let expiring = self.peers.as_ref().map(ConnectionRegistry::expiring);
        async move {
            match expiring {
                Some(expiring) => expiring.cancelled_owned().await,
                None => std::future::pending().await,
            }
        }
    }
}
