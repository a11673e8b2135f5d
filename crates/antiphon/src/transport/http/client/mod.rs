//! The calling side of HTTP: one POST per message.
//!
//! This module gives a POST and its response their meaning in JSON-RPC. [`Http1`] and [`Http2`] carry
//! them, and never look at the message.

mod chunked;
mod client_service;
mod connection;
mod connector;
mod error;
mod head;
mod http1_client;
mod http2_client;
#[cfg(feature = "tls")]
mod https;
mod pool;
mod request;
mod response;

use std::io;
use std::sync::Arc;

use antiphon_core::{Limits, Message, Payload, RawJson, Rules, decode};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, StatusCode, Uri};
use hyper_util::client::legacy::connect::HttpConnector;

pub use self::client_service::HttpClientService;
#[cfg(feature = "jwt")]
pub(crate) use self::client_service::token_layer;
pub(crate) use self::client_service::{HttpClientLayer, boxed_layer};
use self::connector::TcpConnector;
use self::http1_client::Http1;
#[doc(hidden)]
pub use self::http1_client::exchange_over;
use self::http2_client::Http2;
#[cfg(feature = "tls")]
use self::https::Https;
use self::request::{RequestBuffer, RequestHead, merged, with_defaults};
use crate::BoxFuture;
use crate::call::exchange::{
    BatchResults, RequestIds, encode_batch, encode_id, match_batch, match_call, match_notification,
    no_reply, readable,
};
use crate::call::{BatchEntry, CallError, Caller, Invocation, Watch};
use crate::connection::Connection;
use crate::current_trace;
use crate::dialect::CallStyle;
use crate::endpoint::Authority;
use crate::engine::Settings;
use crate::error::HttpStatusError;
use crate::log_excerpt::log_excerpt;
use crate::subscription::Follower;
use crate::tap::{Direction, Taps};
#[cfg(feature = "tls")]
use crate::transport::tls::TlsClient;

/// The settings of an HTTP client.
#[derive(Clone, Copy)]
pub(crate) struct HttpClientSettings<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) limits: &'a Limits,
    /// Whether to use HTTP/2 only.
    pub(crate) http2: bool,
    /// The settings of TLS, for `https`.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<&'a TlsClient>,
    /// The layers around each request, the innermost first.
    pub(crate) layers: &'a [HttpClientLayer],
}

/// Calls a server over POST.
pub(crate) struct HttpCaller {
    wire: Arc<HttpWire>,
    /// The layers around each request, if there are any.
    layered: Option<HttpClientService>,
    rules: Rules,
    calls: CallStyle,
    /// The largest body of a response, in bytes.
    limit: usize,
    ids: RequestIds,
    tap: Taps,
    /// The description of the connection for the tap.
    facts: Connection,
}

/// The address of a server, and the HTTP version to reach it by.
struct HttpWire {
    version: HttpVersion,
    uri: Uri,
    /// The headers of every request, for layers, which see complete requests.
    headers: HeaderMap,
    /// Whether the user has set the Host header.
    has_host: bool,
}

/// The version of HTTP.
enum HttpVersion {
    Http1(Http1<TcpConnector>),
    /// With prior knowledge: cleartext has no negotiation.
    Http2(Box<Http2<HttpConnector>>),
    /// The version that the server picks.
    #[cfg(feature = "tls")]
    Https(Box<Https>),
}

impl HttpCaller {
    /// Creates a caller. The first call connects.
    pub(crate) fn new(
        authority: &Authority,
        path: &str,
        settings: &HttpClientSettings<'_>,
        engine: &Settings,
    ) -> io::Result<Self> {
        let HttpClientSettings { headers, limits, http2, layers, .. } = *settings;
        let uri = |scheme: &str| {
            format!("{scheme}://{authority}{path}").parse::<Uri>().map_err(io::Error::other)
        };
        let (rules, calls, limit) = (engine.rules, engine.calls(), limits.longest_frame());
        let new = |version, uri: Uri| {
            let uri_is_secure = uri.scheme_str() == Some("https");
            let has_host = headers.contains_key(HOST);
            let headers = with_defaults(&uri, headers);
            let wire = Arc::new(HttpWire { version, uri, headers, has_host });
            let layered = client_service::layered(layers, &wire);
            let facts = Connection::new(if uri_is_secure { "https" } else { "http" });
            let (ids, tap) = (RequestIds::default(), engine.tap.clone());
            Self { wire, layered, rules, calls, limit, ids, tap, facts }
        };
        #[cfg(feature = "tls")]
        if let Some(tls) = settings.tls {
            let uri = uri("https")?;
            let https = Https::new(authority, &uri, tls, settings)?;
            return Ok(new(HttpVersion::Https(Box::new(https)), uri));
        }
        let uri = uri("http")?;
        let connector = connector::http_connector(limits);
        let version = if http2 {
            HttpVersion::Http2(Box::new(Http2::new(connector, uri.clone(), headers, limits)))
        } else {
            HttpVersion::Http1(Http1::new(
                TcpConnector::new(connector, uri.clone()),
                &uri,
                headers,
                limits,
            ))
        };
        Ok(new(version, uri))
    }

    /// Shows a message to the tap. An empty reply is not a message.
    fn see(&self, direction: Direction, message: &[u8]) {
        if !message.is_empty() {
            self.tap.message(direction, message, &self.facts);
        }
    }

    /// Starts a request, with headers of its own if there are any.
    fn buffer(&self, message: usize, headers: Option<&HeaderMap>) -> RequestBuffer {
        match (&self.wire.version, headers) {
            (_, headers) if self.layered.is_some() => RequestBuffer::with(message, headers),
            (HttpVersion::Http1(http), None) => http.buffer(message),
            #[cfg(feature = "tls")]
            (HttpVersion::Https(http), None) => http.buffer(message),
            (HttpVersion::Http2(_), headers) => RequestBuffer::with(message, headers),
            (_, Some(own)) => {
                let headers = merged(&self.wire.headers, own);
                RequestHead::new(&self.wire.uri, &headers).buffer_with(message, own)
            }
        }
    }

    /// Starts the request of one call: its head, and the message up to its id. The trace of the call
    /// is sent as headers, so that the message is sent unchanged.
    fn call_buffer(&self, call: &Invocation) -> RequestBuffer {
        let mut buffer = match call.trace() {
            None => self.buffer(call.about_len(), call.headers()),
            Some(trace) => {
                let mut headers = call.headers().cloned().unwrap_or_default();
                current_trace::write_headers(trace, &mut headers);
                self.buffer(call.about_len(), Some(&headers))
            }
        };
        self.calls.encode_head(&call.method, call.params.as_ref(), &mut buffer.bytes);
        buffer
    }

    /// Sends one POST. Returns its response, whose body is within the limit.
    async fn post_message(
        &self,
        buffer: RequestBuffer,
    ) -> Result<response::ReceivedResponse, CallError> {
        self.see(Direction::Sent, buffer.message());
        let posted = match (&self.layered, &self.wire.version) {
            (Some(layered), _) => return self.post_layered(layered, buffer).await,
            (None, HttpVersion::Http1(http)) => http.post(buffer).await,
            (None, HttpVersion::Http2(http)) => Box::pin(http.post(buffer)).await,
            #[cfg(feature = "tls")]
            (None, HttpVersion::Https(http)) => Box::pin(http.post(buffer)).await,
        };
        let response = posted.map_err(|fault| fault.at(&self.wire.uri))?;
        self.see(Direction::Received, &response.body);
        Ok(response)
    }

    /// Like `post_message`, through the layers.
    async fn post_layered(
        &self,
        layered: &HttpClientService,
        buffer: RequestBuffer,
    ) -> Result<response::ReceivedResponse, CallError> {
        let response = layered.post(self.wire.request(buffer), self.limit).await?;
        self.see(Direction::Received, response.body());
        let (parts, body) = response.into_parts();
        Ok(response::ReceivedResponse::new(parts.status, body).with_headers(parts.headers))
    }

    /// Sends one POST that expects a reply, and decodes it. A status of failure may carry JSON-RPC too.
    async fn exchange(&self, buffer: RequestBuffer) -> Result<Payload, CallError> {
        let response = self.post_message(buffer).await?;
        let (status, body) = (response.status, &response.body);
        if status == StatusCode::NO_CONTENT || (status.is_success() && body.is_empty()) {
            return Err(no_reply(&format!(" (HTTP {status})")));
        }
        let payload = decode(body, &self.rules);
        if !status.is_success() && !is_answer(&payload) {
            return Err(self.refused(status, body));
        }
        readable(payload, body, || coding(response.headers.as_deref()))
    }

    /// Sends one POST that expects no reply. It fails if the server refuses it.
    async fn post_notifications(&self, buffer: RequestBuffer) -> Result<(), CallError> {
        let response = self.post_message(buffer).await?;
        let (status, body) = (response.status, &response.body);
        if status.is_success() && body.is_empty() {
            return Ok(());
        }
        match match_notification(decode(body, &self.rules)) {
            Ok(()) if status.is_success() => {
                // A Bitcoin node responds to every 1.0 message.
                if self.calls == CallStyle::V2 {
                    tracing::warn!(%status, "a notification got a reply");
                }
                Ok(())
            }
            Ok(()) => Err(self.refused(status, body)),
            Err(error) => Err(error),
        }
    }

    /// The error of a status without JSON-RPC, with the beginning of the body.
    fn refused(&self, status: StatusCode, body: &[u8]) -> CallError {
        let server = error::named(&self.wire.uri);
        CallError::HttpStatus(Box::new(HttpStatusError::new(status, server, body)))
    }
}

impl Caller for HttpCaller {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(async move {
            let id = self.ids.for_call(&call);
            let mut buffer = self.call_buffer(&call);
            encode_id(&id, &mut buffer.bytes);
            match_call(&id, self.exchange(buffer).await?)
        })
    }

    fn send_watched(&self, _: Invocation, _: Watch) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(std::future::ready(Err(CallError::CannotCallBack("http"))))
    }

    fn subscribe(&self, _: Invocation, _: Follower) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(std::future::ready(Err(CallError::CannotCallBack("http"))))
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            let mut buffer = self.call_buffer(&notification);
            self.calls.end_notification(&mut buffer.bytes);
            self.post_notifications(buffer).await
        })
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<BatchResults, CallError>> {
        Box::pin(async move {
            let headers = all_headers(&entries);
            let len = entries.iter().map(|entry| entry.invocation().about_len()).sum();
            let mut buffer = self.buffer(len, headers.as_ref());
            let ids = self.ids.for_batch(&entries);
            encode_batch(&entries, ids.clone(), self.calls, &mut buffer.bytes);
            if ids.is_empty() {
                return self.post_notifications(buffer).await.map(|()| Vec::new());
            }
            match_batch(ids, self.exchange(buffer).await?, self.calls)
        })
    }
}

/// Returns the headers of all entries. If entries share a header name, the last entry wins.
fn all_headers(entries: &[BatchEntry]) -> Option<HeaderMap> {
    let headers = entries.iter().filter_map(|entry| entry.invocation().headers());
    headers.fold(None, |all, one| Some(merged(&all.unwrap_or_default(), one)))
}

/// The headers of a reply that tell why it is no JSON, for an error message.
fn coding(headers: Option<&HeaderMap>) -> String {
    let shown = |name: HeaderName| {
        let value = headers?.get(&name)?;
        (!head::is_plain_json(name.as_str(), value.as_bytes()))
            .then(|| format!("{name}: {}", log_excerpt(&String::from_utf8_lossy(value.as_bytes()))))
    };
    let shown: Vec<_> = [CONTENT_TYPE, CONTENT_ENCODING].into_iter().filter_map(shown).collect();
    if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
}

fn is_answer(payload: &Payload) -> bool {
    matches!(payload, Payload::Batch(_) | Payload::One(Ok(Message::Response(_))))
}
