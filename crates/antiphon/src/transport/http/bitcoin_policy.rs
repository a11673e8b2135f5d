//! The HTTP responses of Bitcoin nodes, as Bitcoin Core 28 and later send them.
//!
//! The policy sets statuses and headers. It does not change JSON-RPC itself: the dialect decides the versions and the
//! error messages.

use antiphon_core::{Code, Versions, encode};
use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, UPGRADE, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::value::RawValue;

use super::http_body::HttpBody;
use super::http_message::{HttpMessage, read_objects};
use super::policy::{HeadDecision, HttpOutcome, HttpPolicy};
use super::refusal::HttpRefusal;
use super::response;
use crate::connection::Connection;
use crate::layer::Auth;

/// The HTTP responses of Bitcoin nodes, as Bitcoin Core 28 and later send them.
/// [`Dialect::bitcoin`](crate::Dialect::bitcoin) uses this policy if the server sets none.
///
/// | reply | status |
/// |---|---|
/// | a 1.0 error | 400 for -32600, 404 for -32601, 500 for any other code |
/// | the error -32700 | 500 |
/// | a 2.0 error | 200, or 400 for -32600 |
/// | a batch | 200, or 204 if it has only 2.0 notifications |
/// | none, for a 2.0 notification | 204 |
/// | an [`Auth`] layer rejects all calls | 401, as described below |
///
/// Each JSON-RPC response ends with a newline. Every content type is accepted. Methods other than POST get status 405.
///
/// With [`auth`](Self::auth), credentials are checked before the body of a request is read. If they are missing or
/// invalid, the response has status 401, `www-authenticate: Basic realm="jsonrpc"` and no body.
///
/// ```
/// use antiphon::layer::Auth;
/// use antiphon::transport::http::BitcoinPolicy;
/// use antiphon::{BindError, Dialect, Server};
///
/// # async fn example() -> Result<(), BindError> {
/// let auth = Auth::new().basic("alice", "pa55word");
/// let server = Server::bind("http://127.0.0.1:8332").await?;
/// let server = server.dialect(Dialect::bitcoin()).http_policy(BitcoinPolicy::new().auth(auth));
/// # drop(server);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct BitcoinPolicy {
    auth: Option<Auth>,
    always_v1: bool,
}

impl BitcoinPolicy {
    /// Creates a policy without authentication.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires the credentials of [`Auth::bearer`] and [`Auth::basic`] before the body of a request is read.
    /// Handlers see the [`Identity`](crate::Identity).
    ///
    /// [`Auth::verify`] is asynchronous, so this policy does not call it, and rejects credentials that need it. Use
    /// such an `Auth` only as a layer around the handler: rejected calls get the same response.
    #[must_use]
    pub fn auth(self, auth: Auth) -> Self {
        Self { auth: Some(auth), ..self }
    }

    /// Sends 1.0 responses and statuses to 2.0 calls too, as Bitcoin Core before version 28 does. A 2.0 call without
    /// an id remains a notification.
    ///
    /// Some clients need this: python-bitcoinrpc 1.0 sends batches as version 2.0, but fails if a response has no
    /// member `error`.
    #[must_use]
    pub fn always_v1(self) -> Self {
        Self { always_v1: true, ..self }
    }

    fn admits(&self, request: &mut Connection) -> bool {
        let Some(auth) = &self.auth else { return true };
        let identity = auth.accept_header(request);
        identity.map(|identity| request.extensions.insert(identity)).is_some()
    }
}

impl HttpPolicy for BitcoinPolicy {
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        let is_post = request.http_method() == Some(&Method::POST);
        let is_upgrade = request.headers().contains_key(UPGRADE);
        if !is_post && !is_upgrade {
            return HeadDecision::Continue;
        }
        match self.admits(request) {
            true if is_post => HeadDecision::ReadBody,
            true => HeadDecision::Continue,
            false => HeadDecision::Respond(unauthorized()),
        }
    }

    fn respond(
        &self,
        _request: &Connection,
        _message: &HttpMessage,
        outcome: HttpOutcome,
    ) -> Response<HttpBody> {
        if outcome.challenge().is_some() {
            return unauthorized();
        }
        let Some(reply) = outcome.reply() else { return outcome.into_response() };
        let is_v1 = self.always_v1 || is_v1(reply);
        // The status depends on the reply: an incomplete Array gets a single error, so its reply is not a batch.
        let status = match is_batch(reply) || is_result(reply) {
            true => StatusCode::OK,
            false => status_of_error(is_v1, &outcome.error_codes()),
        };
        let reply = outcome.into_reply().unwrap_or_default();
        let body = line(if self.always_v1 { to_v1(&reply) } else { reply });
        response::with_body(status, "application/json", body)
    }

    fn refuse(&self, request: &Connection, refusal: HttpRefusal) -> Response<HttpBody> {
        let is_post_only = refusal == HttpRefusal::MethodNotAllowed;
        let error = refusal.error();
        let mut response = refusal.into_response();
        if is_post_only {
            *response.body_mut() = HttpBody::from(post_only(request.http_method()));
            response.headers_mut().remove(CONTENT_TYPE);
        }
        if let Some(error) = error {
            let mut reply = BytesMut::new();
            encode::response(&Versions::Bitcoin.unreadable_id(), &Err(error), &mut reply);
            *response.body_mut() = HttpBody::from(line(reply.freeze()));
        }
        response
    }
}

/// Returns the response body for a method other than POST. Bitcoin Core sends none for methods that it does not know.
fn post_only(method: Option<&Method>) -> &'static str {
    match method {
        Some(&(Method::GET | Method::HEAD | Method::PUT)) => {
            "JSONRPC server handles only POST requests"
        }
        _ => "",
    }
}

fn unauthorized() -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::default());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let challenge = HeaderValue::from_static("Basic realm=\"jsonrpc\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

/// Returns whether a reply, as the library encodes it, is the reply to a batch.
fn is_batch(reply: &[u8]) -> bool {
    reply.starts_with(b"[")
}

/// Returns whether a single reply, as the library encodes it, is a 1.0 response.
fn is_v1(reply: &[u8]) -> bool {
    reply.starts_with(b"{\"result\":")
}

/// Returns whether a single reply, as the library encodes it, is a result. Compares only the first bytes, because a
/// result may be long.
fn is_result(reply: &[u8]) -> bool {
    let is_error = reply.starts_with(b"{\"result\":null,\"error\":{")
        || reply.starts_with(b"{\"jsonrpc\":\"2.0\",\"error\":");
    !is_error
}

/// Returns the status of a failed call. Bitcoin Core uses -32600 only for invalid messages, and answers them with 400
/// in every version.
fn status_of_error(is_v1: bool, codes: &[Option<i64>]) -> StatusCode {
    match codes.first().copied().flatten().map(Code) {
        Some(Code::INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        _ if !is_v1 => StatusCode::OK,
        Some(Code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns a reply with all its responses in the form of 1.0.
fn to_v1(reply: &[u8]) -> Bytes {
    let all = read_objects(reply, ["result", "error", "id"], usize::MAX, |[result, error, id]| {
        let text = |member: Option<&RawValue>| member.map_or("null", RawValue::get).to_owned();
        let id = id.map(|id| format!(",\"id\":{id}")).unwrap_or_default();
        format!("{{\"result\":{},\"error\":{}{id}}}", text(result), text(error))
    });
    let all = all.join(",");
    Bytes::from(if is_batch(reply) { format!("[{all}]") } else { all })
}

/// Appends a newline.
fn line(reply: Bytes) -> Bytes {
    let mut line = BytesMut::from(reply);
    line.put_u8(b'\n');
    line.freeze()
}
