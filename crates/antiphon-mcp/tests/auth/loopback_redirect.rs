//! The redirect of a browser to this machine.

use std::sync::Mutex;
use std::time::Duration;

use antiphon::http::{Request, StatusCode};
use antiphon_mcp::auth::client::{AuthorizeUser as _, LoopbackRedirect, UserError};
use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::support::http::send;

const URL: &str = "https://auth.example/authorize?state=s0&x=y&state=s1";

#[tokio::test]
async fn the_redirect_with_the_right_state_ends_the_wait() {
    let (shown, is_shown) = oneshot::channel();
    let shown = Mutex::new(Some(shown));
    let redirect = LoopbackRedirect::new(move |url| {
        shown.lock().unwrap().take().unwrap().send(url.to_owned()).unwrap();
    });
    let pending = redirect.prepare().await.unwrap();
    let uri = pending.redirect_uri().to_owned();
    let answer = tokio::spawn(pending.authorize(URL.to_owned()));
    assert_eq!(is_shown.await.unwrap(), URL);

    // A connection that says nothing, as browsers open in advance, does not block the others.
    let authority = uri.strip_prefix("http://").unwrap().strip_suffix("/callback").unwrap();
    let mut silent = TcpStream::connect(authority).await.unwrap();
    silent.write_all(b"GET /call").await.unwrap();
    let get = |path: &str| {
        let url = format!("http://{authority}{path}");
        send(Request::get(url).body(Bytes::new()).unwrap())
    };
    for path in ["/favicon.ico", "/callback?code=c", "/callback?code=c&state=s2", "/x?state=s1"] {
        assert_eq!(get(path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let response = get("/callback?code=c1&state=s1").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-security-policy"], "default-src 'none'");
    assert_eq!(answer.await.unwrap().unwrap(), "code=c1&state=s1");
    // Nothing listens any more.
    assert!(TcpStream::connect(authority).await.is_err());
}

#[tokio::test]
async fn the_wait_for_the_user_is_limited() {
    let redirect = LoopbackRedirect::new(|_| {}).wait(Duration::from_millis(10));
    let pending = redirect.prepare().await.unwrap();
    let error = pending.authorize(URL.to_owned()).await.unwrap_err();
    assert!(matches!(error, UserError::Timeout(_)), "{error}");
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let first = LoopbackRedirect::new(|_| {}).prepare().await.unwrap();
    let uri = first.redirect_uri().to_owned();
    let port = uri.strip_suffix("/callback").unwrap().rsplit(':').next().unwrap().parse().unwrap();
    let Err(error) = LoopbackRedirect::new(|_| {}).port(port).prepare().await else {
        panic!("both listen on {port}")
    };
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}
