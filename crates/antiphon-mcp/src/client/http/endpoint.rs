//! One HTTP endpoint with its settings: sends requests with credentials.

use std::sync::{Arc, Mutex};

use antiphon::Limits;
use antiphon::http::header::WWW_AUTHENTICATE;
use antiphon::http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::connection::HttpConnections;
use super::event_parser::{Event, EventParser, TooLong};
use crate::client::credentials::{Credentials, DPOP_NONCE, Refusal};
use crate::client::error::McpError;
use crate::client::inbox::{Inbox, locked};

/// How often a request is repeated with another token.
const MAX_LOGINS: usize = 2;
/// The part of a body that an error shows.
const EXCERPT: usize = 512;

/// The settings of an HTTP endpoint.
pub(in crate::client) struct HttpSettings {
    pub(in crate::client) uri: Uri,
    pub(in crate::client) headers: HeaderMap,
    pub(in crate::client) limits: Limits,
    pub(in crate::client) credentials: Option<Arc<dyn Credentials>>,
    #[cfg(feature = "tls")]
    pub(in crate::client) tls: antiphon::transport::tls::TlsClient,
}

/// An HTTP endpoint.
#[derive(Clone)]
pub(super) struct HttpEndpoint {
    connections: HttpConnections,
    pub(super) uri: Uri,
    headers: HeaderMap,
    credentials: Option<Arc<dyn Credentials>>,
    /// The largest message.
    max_bytes: usize,
    inbox: Arc<Inbox>,
    last_token: Arc<Mutex<Option<String>>>,
}

impl HttpEndpoint {
    pub(super) fn new(settings: &HttpSettings, inbox: &Arc<Inbox>) -> Self {
        let connections = HttpConnections::new(
            &settings.uri,
            &settings.limits,
            #[cfg(feature = "tls")]
            settings.tls.clone(),
        );
        Self {
            connections,
            uri: settings.uri.clone(),
            headers: settings.headers.clone(),
            credentials: settings.credentials.clone(),
            max_bytes: settings.limits.longest_frame(),
            inbox: inbox.clone(),
            last_token: Arc::default(),
        }
    }

    /// The same endpoint with another path.
    pub(super) fn at(&self, uri: Uri) -> Self {
        Self { uri, ..self.clone() }
    }

    /// Sends a request with these headers besides those of the settings, and asks for another token if it is refused.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, McpError> {
        let mut token = self.token(None).await?;
        for attempt in 0.. {
            let mut request = Request::new(body.clone());
            *request.method_mut() = method.clone();
            *request.uri_mut() = self.uri.clone();
            *request.headers_mut() = self.headers.clone();
            request.headers_mut().extend(headers.clone());
            if let Some((credentials, token)) = self.credentials.as_ref().zip(token.as_deref()) {
                let headers = request.headers_mut();
                let authorized = credentials.authorize(token, &method, &self.uri, headers);
                authorized.map_err(McpError::Credentials)?;
            }
            let response = self.connections.send(request).await?;
            let Some(refused) = Refused::by(&response) else { return Ok(response) };
            drop(response);
            token = match &self.credentials {
                Some(_) if attempt < MAX_LOGINS => {
                    self.token(Some(refused.as_refusal(token.as_deref()))).await?
                }
                _ => None,
            };
            if token.is_none() {
                return Err(refused.into());
            }
        }
        Err(McpError::SessionEnded)
    }

    /// Asks for a token. Another token may belong to another user, so nothing that is cached may be used with it.
    async fn token(&self, refused: Option<Refusal<'_>>) -> Result<Option<String>, McpError> {
        let Some(credentials) = &self.credentials else { return Ok(None) };
        let token = self.inbox.clock.stopped(credentials.token(refused)).await;
        let token = token.map_err(McpError::Credentials)?;
        let mut last = locked(&self.last_token);
        if *last != token {
            if last.is_some() {
                self.inbox.cache.clear();
            }
            last.clone_from(&token);
        }
        Ok(token)
    }

    /// Reads a body as a whole.
    pub(super) async fn body(&self, mut body: Incoming) -> Result<Bytes, McpError> {
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| McpError::Interrupted(error.to_string()))?;
            let Ok(piece) = frame.into_data() else { continue };
            if whole.len() + piece.len() > self.max_bytes {
                return Err(too_long(self.max_bytes));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.into())
    }

    /// Reads a body as events.
    pub(super) fn events(&self, body: Incoming) -> EventReader {
        EventReader { body, parser: EventParser::new(self.max_bytes), limit: self.max_bytes }
    }

    /// The error for a status of failure: the JSON-RPC error in the body, or the status.
    pub(super) async fn failure(&self, response: Response<Incoming>) -> McpError {
        #[derive(serde::Deserialize)]
        struct Failure {
            error: antiphon::ErrorObject,
        }
        let status = response.status();
        let body = match self.body(response.into_body()).await {
            Ok(body) => body,
            Err(error) => return error,
        };
        let text = String::from_utf8_lossy(&body);
        match crate::types::from_object::<Failure>(&text) {
            Ok(failure) => McpError::Rpc(failure.error),
            Err(_) => McpError::Status { status, body: text.chars().take(EXCERPT).collect() },
        }
    }
}

pub(super) fn too_long(limit: usize) -> McpError {
    McpError::Protocol(format!(
        "a message is longer than the limit of {limit} bytes; raise `Limits::frame_bytes`"
    ))
}

/// A refused request.
struct Refused {
    status: StatusCode,
    challenge: Option<String>,
    dpop_nonce: Option<String>,
}

impl Refused {
    /// A 403 without a challenge is no matter of credentials.
    fn by(response: &Response<Incoming>) -> Option<Self> {
        let status = response.status();
        let challenges = response.headers().get_all(WWW_AUTHENTICATE).into_iter();
        let challenges: Vec<&str> = challenges.filter_map(|it| it.to_str().ok()).collect();
        let challenge = (!challenges.is_empty()).then(|| challenges.join(", "));
        let is_refused = status == StatusCode::UNAUTHORIZED
            || (status == StatusCode::FORBIDDEN && challenge.is_some());
        let nonce = response.headers().get(DPOP_NONCE).and_then(|it| it.to_str().ok());
        is_refused.then_some(Self { status, challenge, dpop_nonce: nonce.map(str::to_owned) })
    }

    fn as_refusal<'a>(&'a self, token: Option<&'a str>) -> Refusal<'a> {
        let challenge = self.challenge.as_deref().unwrap_or_default();
        let refusal = Refusal::new(self.status.as_u16(), challenge, token);
        match &self.dpop_nonce {
            Some(nonce) => refusal.with_dpop_nonce(nonce),
            None => refusal,
        }
    }
}

impl From<Refused> for McpError {
    fn from(refused: Refused) -> Self {
        Self::Unauthorized { status: refused.status, challenge: refused.challenge }
    }
}

/// Reads the events of a response.
pub(super) struct EventReader {
    body: Incoming,
    pub(super) parser: EventParser,
    limit: usize,
}

impl EventReader {
    /// Returns the next event; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, McpError> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(Some(event));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| McpError::Interrupted(error.to_string()))?;
            if let Ok(bytes) = frame.into_data() {
                self.parser.read(&bytes).map_err(|TooLong| too_long(self.limit))?;
            }
        }
    }
}
