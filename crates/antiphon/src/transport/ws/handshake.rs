//! The opening handshake of a WebSocket (RFC 6455, section 4): the client's side, and the accept key
//! that both sides compute.

use std::error::Error as _;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::{Bytes, BytesMut};
use http::header::{
    CONNECTION, HOST, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::endpoint::Authority;
use crate::error::HttpStatusError;
use crate::log_excerpt::log_excerpt;
use crate::transport::http::header_values::lists;

/// The GUID that RFC 6455 appends to a key to compute the accept key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The headers that the handshake sets itself.
const RESERVED: [HeaderName; 5] =
    [HOST, UPGRADE, CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION];

/// The value of `Sec-WebSocket-Accept` for this key; `None` if the key is invalid.
pub(in crate::transport) fn accept_key(key: &HeaderValue) -> Option<HeaderValue> {
    if BASE64.decode(key).ok()?.len() != 16 {
        return None;
    }
    let mut sha1 = sha1_smol::Sha1::new();
    sha1.update(key.as_bytes());
    sha1.update(GUID.as_bytes());
    HeaderValue::from_str(&BASE64.encode(sha1.digest().bytes())).ok()
}

/// Performs the client's side of the handshake. `server` is the endpoint without its path. Returns the stream, and the bytes that were read after the
/// response.
pub(super) async fn upgrade<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    server: String,
    authority: &Authority,
    path: &str,
    headers: &HeaderMap,
) -> io::Result<(S, Bytes)> {
    let key = key();
    let request = request(&key, authority, path, headers)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(cause)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(cause)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refused(response, server).await);
        }
        check(response.headers(), &key)?;
        hyper::upgrade::on(response).await.map_err(cause)
    };
    tokio::pin!(exchange);
    let upgraded = tokio::select! {
        biased;
        upgraded = &mut exchange => upgraded,
        _ended = connection.with_upgrades() => exchange.await,
    };
    let parts = upgraded?
        .downcast::<TokioIo<S>>()
        .map_err(|_| io::Error::other("the upgrade returned another stream"))?;
    Ok((parts.io.into_inner(), parts.read_buf))
}

/// Returns the I/O error that caused an error of hyper, which itself only names the failed operation.
fn cause(error: hyper::Error) -> io::Error {
    match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        Some(source) => io::Error::new(source.kind(), source.to_string()),
        None => io::Error::other(error),
    }
}

/// Sixteen unpredictable bytes, in base64.
fn key() -> String {
    let random = RandomState::new();
    BASE64.encode([random.hash_one(0).to_ne_bytes(), random.hash_one(1).to_ne_bytes()].concat())
}

fn request(
    key: &str,
    authority: &Authority,
    path: &str,
    headers: &HeaderMap,
) -> io::Result<Request<Empty<Bytes>>> {
    if let Some(name) = headers.keys().find(|name| RESERVED.contains(name)) {
        let text = format!("the WebSocket handshake sets the header `{name}` itself; remove it");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut request = Request::get(path)
        .header(HOST, authority.to_string())
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, key)
        .body(Empty::new())
        .map_err(io::Error::other)?;
    request.headers_mut().extend(headers.clone());
    Ok(request)
}

/// The server responded with another status than 101.
#[derive(Debug, thiserror::Error)]
#[error("the server refused the upgrade to WebSocket{hint}")]
struct UpgradeRefused {
    hint: &'static str,
    source: HttpStatusError,
}

/// The error of a server that responded with another status than 101.
async fn refused(response: Response<Incoming>, server: String) -> io::Error {
    let (status, mut body) = (response.status(), response.into_body());
    let hint = match status.as_u16() {
        200 | 404 | 405 | 426 => "; is this a WebSocket endpoint?",
        _ => "",
    };
    let mut beginning = BytesMut::new();
    let reading = async {
        while beginning.len() < BEGINNING
            && let Some(Ok(frame)) = body.frame().await
        {
            let piece = frame.into_data().unwrap_or_default();
            beginning.extend_from_slice(&piece[..piece.len().min(BEGINNING)]);
        }
    };
    // The status is enough for a server that does not finish its body.
    let _ = timeout(BEGINNING_TIME, reading).await;
    io::Error::other(UpgradeRefused {
        hint,
        source: HttpStatusError::new(status, server, &beginning),
    })
}

/// The part of the body of a refusal that is read, in bytes.
const BEGINNING: usize = 1_024;
/// The time in which it is read.
const BEGINNING_TIME: Duration = Duration::from_secs(1);

/// Checks that the server accepts the upgrade and has read the key (section 4.1).
fn check(headers: &HeaderMap, key: &str) -> io::Result<()> {
    if !lists(headers, &UPGRADE, "websocket") || !lists(headers, &CONNECTION, "upgrade") {
        let (protocol, connection) = (shown(headers, &UPGRADE), shown(headers, &CONNECTION));
        let text = format!(
            "the server did not switch to WebSocket: `Upgrade` is {protocol} and `Connection` is \
            {connection}"
        );
        return Err(io::Error::other(text));
    }
    let expected = HeaderValue::from_str(key).ok().as_ref().and_then(accept_key);
    if expected.is_none() || headers.get(SEC_WEBSOCKET_ACCEPT) != expected.as_ref() {
        let returned = shown(headers, &SEC_WEBSOCKET_ACCEPT);
        let text = format!("`Sec-WebSocket-Accept` is {returned}, expected {expected:?}");
        return Err(io::Error::other(text));
    }
    if headers.contains_key(SEC_WEBSOCKET_EXTENSIONS) {
        let extensions = shown(headers, &SEC_WEBSOCKET_EXTENSIONS);
        let text =
            format!("the server uses WebSocket extensions that were not offered: {extensions}");
        return Err(io::Error::other(text));
    }
    Ok(())
}

/// A header of a server, for an error message.
fn shown(headers: &HeaderMap, name: &HeaderName) -> String {
    match headers.get(name) {
        Some(value) => format!("`{}`", log_excerpt(&String::from_utf8_lossy(value.as_bytes()))),
        None => "absent".to_owned(),
    }
}
