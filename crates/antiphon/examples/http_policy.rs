//! An HTTP policy in the manner of Bitcoin Core: statuses by error code, and credentials that are
//! checked before the body is read.
//!
//! `cargo run -p antiphon --features full --example http_policy`

use antiphon::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use antiphon::http::{HeaderValue, Response, StatusCode};
use antiphon::transport::http::{HeadDecision, HttpBody, HttpMessage, HttpOutcome, HttpPolicy};
use antiphon::{Connection, Context, Router, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

struct BitcoinLike {
    /// The expected value of `authorization`.
    credentials: &'static str,
}

impl HttpPolicy for BitcoinLike {
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        if request.headers().get(AUTHORIZATION).is_some_and(|sent| sent == self.credentials) {
            return HeadDecision::ReadBody; // of any content type
        }
        let mut response = Response::new(HttpBody::default());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        let challenge = HeaderValue::from_static("Basic realm=\"jsonrpc\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        HeadDecision::Respond(response)
    }

    fn respond(
        &self,
        _request: &Connection,
        message: &HttpMessage,
        outcome: HttpOutcome,
    ) -> Response<HttpBody> {
        let status = match outcome.error_codes()[..] {
            _ if message.is_batch() => None,
            [Some(-32600)] => Some(StatusCode::BAD_REQUEST),
            [Some(-32601)] => Some(StatusCode::NOT_FOUND),
            [Some(_)] => Some(StatusCode::INTERNAL_SERVER_ERROR),
            _ => None,
        };
        let mut response = outcome.into_response();
        if let Some(status) = status {
            *response.status_mut() = status;
        }
        response
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router = Router::new().method("getwalletinfo", |(): (), cx: Context| async move {
        let path = cx.connection().path().unwrap_or_default();
        Ok(path.strip_prefix("/wallet/").map(str::to_owned))
    });
    let policy = BitcoinLike { credentials: "Basic dXNlcjpwYXNz" };
    let server = Server::bind("http://127.0.0.1:0").await?.http_policy(policy);
    let authority = server.endpoint().authority().map(ToString::to_string).unwrap_or_default();
    tokio::spawn(server.serve(router));

    let credentials = "authorization: Basic dXNlcjpwYXNz\r\n";
    for (headers, method) in
        [("", "getwalletinfo"), (credentials, "getwalletinfo"), (credentials, "unknown")]
    {
        let message = format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":1}}"#);
        println!("{}", post(&authority, "/wallet/savings", headers, &message).await?);
    }
    Ok(())
}

/// The status line and the body of the response to a POST.
async fn post(authority: &str, path: &str, headers: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(authority).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    Ok(format!("{} {body}", head.lines().next().unwrap_or_default()))
}
