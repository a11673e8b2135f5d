//! The authentication of the Engine API: a token in each HTTP request, including the upgrade to a WebSocket.

use std::time::SystemTime;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Response, StatusCode};

use super::http_body::HttpBody;
use super::policy::{HeadDecision, HttpPolicy};
use super::response;
use crate::connection::Connection;
use crate::layer::{Credentials, JwtSecret};

/// Requires a token of the Engine API in each HTTP request, including the upgrade to a WebSocket.
///
/// A request without a valid token gets status 401 before its body is read. The body of the response states the
/// reason. A token is an HS256 JWT whose `iat` differs from the server's clock by at most 60 seconds. Tokens with other
/// algorithms are rejected.
///
/// Other transports have no headers, so this policy does not protect them. The file permissions of a Unix socket
/// protect it, as in Ethereum nodes.
///
/// ```
/// use antiphon::layer::JwtSecret;
/// use antiphon::transport::http::EnginePolicy;
/// use antiphon::{Client, Context, Dialect, Router, Server};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let secret = JwtSecret::from_hex(&"ab".repeat(32))?;
/// let router = Router::new().method("eth_chainId", |(): (), _cx: Context| async { Ok("0x1") });
/// let server = Server::bind("http://127.0.0.1:0").await?.dialect(Dialect::ethereum());
/// let endpoint = server.endpoint().clone();
/// tokio::spawn(server.http_policy(EnginePolicy::new(secret.clone())).serve(router));
///
/// let client = Client::builder().jwt(secret).connect(&endpoint).await?;
/// assert_eq!(client.call::<String>("eth_chainId", ()).await?, "0x1");
/// let stranger = Client::connect(&endpoint).await?;
/// assert!(stranger.call::<String>("eth_chainId", ()).await.is_err());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct EnginePolicy {
    secret: JwtSecret,
}

impl EnginePolicy {
    /// Creates a policy that accepts tokens signed with this secret.
    pub fn new(secret: JwtSecret) -> Self {
        Self { secret }
    }

    fn check(&self, request: &Connection, now: SystemTime) -> Result<(), String> {
        let reason = match Credentials::of_request(request.headers()) {
            Ok(Credentials::Bearer(token)) => {
                return self.secret.check(&token, now).map_err(|error| error.to_string());
            }
            Ok(_) => "the token is missing",
            Err(reason) => reason,
        };
        Err(format!("{reason} (the Engine API needs `Authorization: Bearer TOKEN`)"))
    }
}

impl HttpPolicy for EnginePolicy {
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        match self.check(request, SystemTime::now()) {
            Ok(()) => HeadDecision::Continue,
            Err(reason) => HeadDecision::Respond(unauthorized(&reason)),
        }
    }
}

fn unauthorized(reason: &str) -> Response<HttpBody> {
    let body = format!("{reason}\n").into();
    let mut response =
        response::with_body(StatusCode::UNAUTHORIZED, "text/plain; charset=utf-8", body);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}
