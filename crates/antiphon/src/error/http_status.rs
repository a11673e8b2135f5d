//! The error of an HTTP response that is not JSON-RPC.

use http::StatusCode;

/// An HTTP response with a status of failure and without a JSON-RPC response.
///
/// ```
/// use antiphon::http::StatusCode;
/// use antiphon::{CallError, Client};
///
/// # async fn example(client: Client) {
/// match client.call::<i64>("subtract", (42, 23)).await {
///     Err(CallError::HttpStatus(error)) if error.status == StatusCode::UNAUTHORIZED => {
///         println!("log in at {}", error.server);
///     }
///     other => println!("{other:?}"),
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpStatusError {
    /// The status.
    pub status: StatusCode,
    /// The server, without the path: `http://127.0.0.1:8650`, or `ws://127.0.0.1:8650` if it refused the
    /// upgrade to WebSocket. The path may hold a key, and messages go
    /// to logs.
    pub server: String,
    /// The beginning of the body, as text.
    pub body: String,
}

impl HttpStatusError {
    /// An error with the beginning of the body.
    #[cfg(feature = "http")]
    pub(crate) fn new(status: StatusCode, server: String, body: &[u8]) -> Self {
        let body = &body[..body.len().min(4 * BODY_CHARS)];
        let text: String = String::from_utf8_lossy(body).chars().take(BODY_CHARS).collect();
        Self { status, server, body: text.trim().to_owned() }
    }
}

/// The maximum number of characters of [`HttpStatusError::body`].
#[cfg(feature = "http")]
const BODY_CHARS: usize = 200;

impl std::error::Error for HttpStatusError {}

impl std::fmt::Display for HttpStatusError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} responded with HTTP {}", self.server, self.status)?;
        match self.body.as_str() {
            "" => Ok(()),
            body => write!(f, ": {body}"),
        }
    }
}
