//! The reasons why a request is refused before any handler runs, and the default response to each.

use antiphon_core::{ErrorObject, Id, encode};
use bytes::{Bytes, BytesMut};
use http::header::{ALLOW, CONNECTION, HeaderName, RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderValue, Response, StatusCode};

use super::http_body::HttpBody;
use super::response::{json, text};

/// Why a request is refused before any handler runs.
///
/// [`into_response`](Self::into_response) gives the default response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpRefusal {
    /// The request has no Host header, or several (400). Holds the reason.
    InvalidHost(&'static str),
    /// The [`Guard`](super::Guard) does not serve this Host or Origin (403). Holds the reason.
    Forbidden(&'static str),
    /// The service has no endpoint at this path (404).
    NotFound,
    /// The method is not POST (405).
    MethodNotAllowed,
    /// The type of the body is not JSON (415).
    UnsupportedMediaType,
    /// The endpoint serves WebSockets only (426).
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
    /// The status of the default response.
    pub fn status(self) -> StatusCode {
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

    /// The JSON-RPC error of the refusals that have one.
    pub fn error(self) -> Option<ErrorObject> {
        match self {
            Self::BodyTooLarge(limit) => Some(ErrorObject::request_too_large(limit)),
            Self::TooManyConnections => Some(ErrorObject::server_busy("too many connections")),
            Self::ShuttingDown => Some(ErrorObject::server_busy("shutting down")),
            _ => None,
        }
    }

    /// One sentence for the client: the problem and the remedy.
    pub fn reason(self) -> &'static str {
        match self {
            Self::InvalidHost(reason) | Self::Forbidden(reason) | Self::InvalidUpgrade(reason) => {
                reason
            }
            Self::NotFound => "there is no endpoint at this path\n",
            Self::MethodNotAllowed => {
                "send a JSON-RPC message by POST, or upgrade to WebSocket by GET\n"
            }
            Self::UnsupportedMediaType => "set content-type to application/json\n",
            Self::UpgradeRequired => "this endpoint speaks WebSocket only\n",
            Self::UnsupportedWebSocketVersion => "use version 13 of the WebSocket protocol\n",
            Self::BodyTooLarge(_) | Self::BodyOverLayerLimit => "the body is too large\n",
            Self::BodyTimedOut => "the body never came\n",
            Self::BodyIncomplete => "the body broke off\n",
            Self::TooManyConnections => "too many connections\n",
            Self::ShuttingDown => "shutting down\n",
            Self::Failed => "the request could not be served\n",
        }
    }

    /// The headers that the status requires.
    pub(super) fn headers(self) -> &'static [(HeaderName, HeaderValue)] {
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

    /// The default response: a JSON-RPC error with a null id where the refusal has one, and otherwise
    /// the reason as text.
    pub fn into_response(self) -> Response<HttpBody> {
        let mut response = match self.error_body() {
            Some(body) => json(self.status(), body),
            None => text(self.status(), self.reason()),
        };
        response.headers_mut().extend(self.headers().iter().cloned());
        response
    }

    /// The body and type of the default response.
    pub(super) fn content(self) -> (&'static str, Bytes) {
        match self.error_body() {
            Some(body) => ("application/json", body),
            None => ("text/plain", Bytes::from_static(self.reason().as_bytes())),
        }
    }

    fn error_body(self) -> Option<Bytes> {
        let mut body = BytesMut::new();
        encode::response(&Id::Null, &Err(self.error()?), &mut body);
        Some(body.freeze())
    }
}
