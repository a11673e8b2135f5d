//! The reasons why a request is refused before any handler runs, and the default response to each.

use std::borrow::Cow;

use antiphon_core::{ErrorObject, Id, encode};
use bytes::{Bytes, BytesMut};
use http::header::{ALLOW, CONNECTION, HeaderName, RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderValue, Response, StatusCode};

use super::http_body::HttpBody;
use super::response;

/// The reason why a request is refused.
///
/// [`into_response`](Self::into_response) creates the default response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpRefusal {
    /// The request has no Host header, or several (400). Holds the reason.
    InvalidHost(&'static str),
    /// The [`Guard`](super::Guard) does not accept this Host or Origin (403). Holds the reason, with the
    /// Host or Origin in at most 64 escaped characters.
    Forbidden(Box<str>),
    /// The service has no endpoint at this path (404).
    NotFound,
    /// The HTTP method is not POST (405).
    MethodNotAllowed,
    /// The type of the body is not JSON (415).
    UnsupportedMediaType,
    /// The endpoint accepts only WebSockets (426).
    UpgradeRequired,
    /// The request to upgrade to a WebSocket is malformed (400). Holds the reason.
    InvalidUpgrade(&'static str),
    /// The WebSocket version is not 13 (426).
    UnsupportedWebSocketVersion,
    /// The body is longer than the limit (413). Holds the limit in bytes.
    BodyTooLarge(usize),
    /// The body is longer than the limit of a layer (413).
    BodyOverLayerLimit,
    /// The rest of the body did not arrive within the stall timeout (408).
    BodyTimedOut,
    /// The body ended early (400).
    BodyIncomplete,
    /// The server has too many connections (503).
    TooManyConnections,
    /// The server shuts down: it accepts no more requests, or did not finish this one in time (503).
    ShuttingDown,
    /// `on_connect`, a layer, the fallback or the policy failed (500).
    Failed,
}

impl HttpRefusal {
    /// Returns the status of the default response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::InvalidHost(_) | Self::InvalidUpgrade(_) | Self::BodyIncomplete => {
                StatusCode::BAD_REQUEST
            }
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::UpgradeRequired | Self::UnsupportedWebSocketVersion => {
                StatusCode::UPGRADE_REQUIRED
            }
            Self::BodyTooLarge(_) | Self::BodyOverLayerLimit => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::TooManyConnections | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the JSON-RPC error of the default response: for a body over
    /// [`Limits::frame_bytes`](crate::Limits::frame_bytes), too many connections, and a shutdown.
    pub fn error(&self) -> Option<ErrorObject> {
        match self {
            Self::BodyTooLarge(limit) => Some(ErrorObject::request_too_large(*limit)),
            Self::TooManyConnections => Some(ErrorObject::server_busy("too many connections")),
            Self::ShuttingDown => Some(ErrorObject::server_busy("shutting down")),
            _ => None,
        }
    }

    /// Returns one sentence for the client, without a line break: the problem or the remedy.
    pub fn reason(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::InvalidHost(reason) => reason,
            Self::InvalidUpgrade(reason) => reason.trim_end(),
            Self::Forbidden(reason) => reason,
            Self::NotFound => "there is no endpoint at this path",
            Self::MethodNotAllowed => {
                "send a JSON-RPC message by POST, or upgrade to WebSocket by GET"
            }
            Self::UnsupportedMediaType => "set content-type to application/json",
            Self::UpgradeRequired => "this endpoint accepts only WebSocket",
            Self::UnsupportedWebSocketVersion => "use version 13 of the WebSocket protocol",
            Self::BodyTooLarge(limit) => {
                return format!("the body is over the limit of {limit} bytes").into();
            }
            Self::BodyOverLayerLimit => "the body is over the limit of the server",
            Self::BodyTimedOut => "the body did not arrive in time",
            Self::BodyIncomplete => "the body is incomplete",
            Self::TooManyConnections => "the server has too many connections; try again later",
            Self::ShuttingDown => "the server shuts down; try again later",
            Self::Failed => "the server failed; its log has the reason",
        })
    }

    /// Returns the headers that the status requires.
    pub(super) fn headers(&self) -> &'static [(HeaderName, HeaderValue)] {
        static POST: [(HeaderName, HeaderValue); 1] = [(ALLOW, HeaderValue::from_static("POST"))];
        static WEBSOCKET: [(HeaderName, HeaderValue); 2] = [
            (UPGRADE, HeaderValue::from_static("websocket")),
            (CONNECTION, HeaderValue::from_static("upgrade")),
        ];
        static VERSION: [(HeaderName, HeaderValue); 1] =
            [(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"))];
        static RETRY: [(HeaderName, HeaderValue); 1] =
            [(RETRY_AFTER, HeaderValue::from_static("1"))];
        match self {
            Self::MethodNotAllowed => &POST,
            Self::UpgradeRequired => &WEBSOCKET,
            Self::UnsupportedWebSocketVersion => &VERSION,
            Self::TooManyConnections => &RETRY,
            _ => &[],
        }
    }

    /// Creates the default response. The body is the [`error`](Self::error) with a null id if there is
    /// one, and otherwise the [`reason`](Self::reason) as one line of text.
    pub fn into_response(self) -> Response<HttpBody> {
        let (content_type, body) = self.content();
        let mut response = response::with_body(self.status(), content_type, body);
        response.headers_mut().extend(self.headers().iter().cloned());
        response
    }

    /// Returns the type and the bytes of the body of the default response.
    pub(super) fn content(&self) -> (&'static str, Bytes) {
        match self.error_body() {
            Some(body) => ("application/json", body),
            None => ("text/plain", format!("{}\n", self.reason()).into()),
        }
    }

    fn error_body(&self) -> Option<Bytes> {
        let mut body = BytesMut::new();
        encode::response(&Id::Null, &Err(self.error()?), &mut body);
        Some(body.freeze())
    }
}
