//! From an HTTP request to a WebSocket (RFC 6455, section 4.2).

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use tokio::net::TcpStream;

use super::answer::{self, HttpResponse};
use super::pipeline::Pipelined;
use super::service::Inner;
use crate::context::Connection;
use crate::peer::dispatcher::Dispatcher;
use crate::peer::{Side, Wire, connect};
use crate::transport::{Metered, Transport, ws};

/// The text that RFC 6455 adds to a key to prove that it was read.
const PROOF: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let value = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| {
        value.split(',').any(|one| one.trim().eq_ignore_ascii_case("websocket"))
    })
}

/// Agrees to the upgrade, and serves the connection once it has happened.
pub(super) fn accept<B>(
    request: &mut Request<B>,
    inner: &Arc<Inner>,
    remote: Option<SocketAddr>,
) -> HttpResponse {
    let headers = request.headers();
    if request.method() != Method::GET || request.version() < Version::HTTP_11 {
        return answer::text(StatusCode::BAD_REQUEST, "a WebSocket starts with GET and HTTP/1.1\n");
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        let mut response = answer::text(
            StatusCode::UPGRADE_REQUIRED,
            "use version 13 of the WebSocket protocol\n",
        );
        response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return response;
    }
    let Some(accepted) = headers.get(SEC_WEBSOCKET_KEY).and_then(proof) else {
        return answer::text(
            StatusCode::BAD_REQUEST,
            "sec-websocket-key must be 16 bytes in base64\n",
        );
    };
    let facts = inner.complete(Connection {
        transport: "ws",
        remote,
        headers: headers.clone(),
        extensions: request.extensions().clone(),
    });
    let upgrade = hyper::upgrade::on(request);
    let serving = serve_upgraded(upgrade, facts, inner.clone());
    match &inner.peers {
        Some(peers) => drop(peers.spawn(serving)),
        None => drop(tokio::spawn(serving)),
    }
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    answer::with_headers(StatusCode::SWITCHING_PROTOCOLS, headers)
}

fn proof(key: &HeaderValue) -> Option<HeaderValue> {
    if BASE64.decode(key).ok()?.len() != 16 {
        return None;
    }
    let mut sha1 = sha1_smol::Sha1::new();
    sha1.update(key.as_bytes());
    sha1.update(PROOF.as_bytes());
    HeaderValue::from_str(&BASE64.encode(sha1.digest().bytes())).ok()
}

async fn serve_upgraded(upgrade: hyper::upgrade::OnUpgrade, facts: Connection, inner: Arc<Inner>) {
    let upgraded = match upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(%error, "an upgrade did not happen"),
    };
    let limits = &inner.dispatcher.limits;
    // The bare socket takes many frames in one system call; the wrapper around it cannot.
    match downcast::<TokioIo<Pipelined<Metered<TcpStream>>>>(upgraded) {
        Ok(parts) => {
            let stream = match parts.io.into_inner().into_inner().await {
                Ok(stream) => stream.unread(parts.read_buf),
                Err(error) => return tracing::debug!(%error, "an upgrade could not be answered"),
            };
            serve(ws::serve(stream, facts, limits), &inner).await;
        }
        Err(upgraded) => {
            let stream = Metered::new(TokioIo::new(upgraded));
            serve(ws::serve(stream, facts, limits), &inner).await;
        }
    }
}

async fn serve<T: Transport>(wire: Wire<T>, inner: &Arc<Inner>) {
    let Dispatcher { handler, limits } = inner.dispatcher.clone();
    let side = Side { handler: Some(handler), limits, rules: inner.rules, tap: None };
    let (peer, connection) = connect(wire, side);
    let _place = inner.peers.as_ref().map(|peers| peers.enter_upgraded(&peer));
    connection.await;
}
