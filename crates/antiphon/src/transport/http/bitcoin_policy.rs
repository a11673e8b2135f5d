//! The HTTP responses of Bitcoin nodes, as Bitcoin Core 28 and later send them.
//!
//! The policy decides statuses, and adds nothing to JSON-RPC itself: the versions and the words of errors are
//! those of the dialect.

use antiphon_core::Code;
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
use crate::layer::{Auth, HeaderAuth};

/// The HTTP responses of Bitcoin nodes, as Bitcoin Core 28 and later send them.
/// [`Dialect::bitcoin`](crate::Dialect::bitcoin) sets it for a server without a policy of its own.
///
/// | reply | status |
/// |---|---|
/// | an error of 1.0 | 400 for -32600, 404 for -32601, 500 for any other code |
/// | a message that cannot be read | 500 |
/// | an error of 2.0 | 200, or 400 for -32600 |
/// | a batch | 200, or 204 if it has only notifications of 2.0 |
/// | a notification of 2.0 | 204 |
///
/// A body ends in a newline. Every content type is accepted. Any method but POST has the status 405.
///
/// With [`auth`](Self::auth), a request needs credentials before its body is read. Without valid ones, the
/// response has the status 401, `www-authenticate: Basic realm="jsonrpc"` and no body.
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
    /// Creates a policy that serves every client.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires these credentials before the body of a request is read. Handlers see the
    /// [`Identity`](crate::Identity). Credentials that only [`Auth::verify`] can decide pass: put the same `Auth` around the
    /// handler too.
    #[must_use]
    pub fn auth(self, auth: Auth) -> Self {
        Self { auth: Some(auth), ..self }
    }

    /// Answers calls of 2.0 in the shape and with the statuses of 1.0 too, as Bitcoin Core before 28 does. A call of 2.0
    /// without an id stays a notification.
    ///
    /// Some clients need it: the batches of python-bitcoinrpc 1.0 state version 2.0, but read the null `error` of 1.0.
    #[must_use]
    pub fn always_v1(self) -> Self {
        Self { always_v1: true, ..self }
    }

    fn admits(&self, request: &mut Connection) -> bool {
        let Some(auth) = &self.auth else { return true };
        match auth.check_header(request) {
            HeaderAuth::Accepted(identity) => {
                request.extensions.insert(Clone::clone(&*identity));
                true
            }
            HeaderAuth::Undecided => true,
            HeaderAuth::Rejected => false,
        }
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
        message: &HttpMessage,
        outcome: HttpOutcome,
    ) -> Response<HttpBody> {
        let Some(reply) = outcome.reply() else { return outcome.into_response() };
        let is_v1 = self.always_v1 || is_v1(reply);
        let status = match message.is_batch() || is_result(reply) {
            true => StatusCode::OK,
            false => status_of_error(is_v1, &outcome.error_codes()),
        };
        let reply = outcome.into_reply().unwrap_or_default();
        let body = line(if self.always_v1 { to_v1(&reply) } else { reply });
        response::with_body(status, "application/json", body)
    }

    fn refuse(&self, request: &Connection, refusal: HttpRefusal) -> Response<HttpBody> {
        let is_post_only = refusal == HttpRefusal::MethodNotAllowed;
        let mut response = refusal.into_response();
        if is_post_only {
            *response.body_mut() = HttpBody::from(post_only(request.http_method()));
            response.headers_mut().remove(CONTENT_TYPE);
        }
        response
    }
}

/// The text for a method that is not POST. Bitcoin Core refuses methods that it does not know without one.
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

/// Whether a single reply, as the library encodes it, is one of 1.0.
fn is_v1(reply: &[u8]) -> bool {
    reply.starts_with(b"{\"result\":")
}

/// Whether a single reply, as the library encodes it, is a result. Its text is not searched: it may be long.
fn is_result(reply: &[u8]) -> bool {
    let is_error = reply.starts_with(b"{\"result\":null,\"error\":{")
        || reply.starts_with(b"{\"jsonrpc\":\"2.0\",\"error\":");
    !is_error
}

/// The status of a failed call. Bitcoin Core reserves -32600 for messages that it cannot read, and answers
/// them with 400 in every version.
fn status_of_error(is_v1: bool, codes: &[Option<i64>]) -> StatusCode {
    match codes.first().copied().flatten().map(Code) {
        Some(Code::INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        _ if !is_v1 => StatusCode::OK,
        Some(Code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Writes the responses of a reply, of either version, in the shape of 1.0.
fn to_v1(reply: &[u8]) -> Bytes {
    let all = read_objects(reply, ["result", "error", "id"], usize::MAX, |[result, error, id]| {
        let text = |member: Option<&RawValue>| member.map_or("null", RawValue::get).to_owned();
        let id = id.map(|id| format!(",\"id\":{id}")).unwrap_or_default();
        format!("{{\"result\":{},\"error\":{}{id}}}", text(result), text(error))
    });
    let all = all.join(",");
    Bytes::from(if reply.starts_with(b"[") { format!("[{all}]") } else { all })
}

/// Appends a newline.
fn line(reply: Bytes) -> Bytes {
    let mut line = BytesMut::from(reply);
    line.put_u8(b'\n');
    line.freeze()
}
