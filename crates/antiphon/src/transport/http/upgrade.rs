//! From an HTTP request to a WebSocket (RFC 6455, section 4.2).

use std::future::ready;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::{Parts, downcast};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::answer::{self, HttpResponse};
use super::fields::lists;
use super::pipeline::Pipelined;
use super::remote::Remote;
use super::service::Inner;
use crate::connection::Connection;
use crate::endpoint::WS;
use crate::engine::Dispatcher;
use crate::io::Metered;
#[cfg(feature = "tls")]
use crate::io::tls::TlsStream;
use crate::peer::{Side, Wire, connect};
use crate::transport::ws::handshake::accept_key;
use crate::transport::{Transport, ws};

pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    lists(headers, &UPGRADE, "websocket")
}

/// Agrees to the upgrade, and serves the connection once it has happened.
pub(super) fn accept<B>(
    request: &mut Request<B>,
    inner: &Arc<Inner>,
    remote: &Remote,
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
    let Some(accepted) = headers.get(SEC_WEBSOCKET_KEY).and_then(accept_key) else {
        return answer::text(
            StatusCode::BAD_REQUEST,
            "sec-websocket-key must be 16 bytes in base64\n",
        );
    };
    let headers = on_its_own(headers);
    let upgrade = hyper::upgrade::on(&mut *request);
    let extensions = Some(request.extensions()).filter(|all| !all.is_empty());
    let extensions = extensions.cloned().unwrap_or_default();
    let mut facts = remote.connection(WS, headers.into(), extensions);
    if inner.dispatcher.settings.complete(&mut facts).is_err() {
        return answer::on_connect_failed();
    }
    // Boxed, since a future keeps room for whatever it was given: the task would hold it twice.
    let serving = Box::pin(serve_upgraded(upgrade, facts, inner.clone()));
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

/// The values that hyper gives are slices of its read buffer, which would live as long as they do.
fn on_its_own(headers: &HeaderMap) -> HeaderMap {
    let mut text = BytesMut::with_capacity(headers.values().map(HeaderValue::len).sum());
    headers.values().for_each(|value| text.extend_from_slice(value.as_bytes()));
    let mut text: Bytes = text.freeze();
    let copy = |(name, value): (&HeaderName, &HeaderValue)| {
        let mut copy = HeaderValue::from_maybe_shared(text.split_to(value.len())).ok()?;
        copy.set_sensitive(value.is_sensitive());
        Some((name.clone(), copy))
    };
    let mut own = HeaderMap::with_capacity(headers.keys_len());
    own.extend(headers.iter().filter_map(copy));
    own
}

/// Made of combinators, since an async block keeps the room of what it has given away.
fn serve_upgraded(
    upgrade: OnUpgrade,
    facts: Connection,
    inner: Arc<Inner>,
) -> impl Future<Output = ()> {
    upgrade.then(move |upgraded| match upgraded {
        Ok(upgraded) => open(upgraded, facts, inner).left_future(),
        Err(error) => {
            tracing::debug!(%error, "an upgrade did not happen");
            ready(()).right_future()
        }
    })
}

/// The connection on an upgraded stream.
fn open(
    upgraded: Upgraded,
    facts: Connection,
    inner: Arc<Inner>,
) -> impl Future<Output = ()> + use<> {
    // The bare socket takes many frames in one system call; the wrapper around it cannot.
    match downcast::<Ours<TcpStream>>(upgraded) {
        Ok(parts) => take_over(parts, facts, inner).left_future(),
        Err(upgraded) => open_other(upgraded, facts, &inner).right_future(),
    }
}

/// The same on a stream that is not a bare socket.
fn open_other(
    upgraded: Upgraded,
    facts: Connection,
    inner: &Arc<Inner>,
) -> impl Future<Output = ()> + use<> {
    #[cfg(feature = "tls")]
    let upgraded = match downcast::<Ours<TlsStream>>(upgraded) {
        Ok(parts) => return take_over(parts, facts, inner.clone()).left_future(),
        Err(upgraded) => upgraded,
    };
    let wire = ws::serve(TokioIo::new(upgraded), &[], facts, &inner.dispatcher.settings.limits);
    let serving = serve(wire, inner);
    #[cfg(feature = "tls")]
    let serving = serving.right_future();
    serving
}

/// A stream as our own listener gives it to hyper.
type Ours<S> = TokioIo<Pipelined<Metered<S>>>;

/// Takes the stream out of its wrappers, once all that was said on it has gone out.
fn take_over<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    parts: Parts<Ours<S>>,
    facts: Connection,
    inner: Arc<Inner>,
) -> impl Future<Output = ()> + use<S> {
    let Parts { io, read_buf, .. } = parts;
    let agreed = io.into_inner().into_inner();
    agreed.then(move |stream: io::Result<(Metered<S>, Bytes)>| match stream {
        Ok((stream, unread)) => {
            let limits = &inner.dispatcher.settings.limits;
            let unread = [read_buf, unread].concat();
            let wire = ws::serve(stream.into_inner(), &unread, facts, limits);
            serve(wire, &inner).left_future()
        }
        Err(error) => {
            tracing::debug!(%error, "an upgrade could not be answered");
            ready(()).right_future()
        }
    })
}

fn serve<T: Transport>(wire: Wire<T>, inner: &Inner) -> impl Future<Output = ()> + use<T> {
    let Dispatcher { handler, settings } = inner.dispatcher.clone();
    let side = Side { handler: Some(handler), settings };
    let (peer, connection) = connect(wire, side);
    let place = inner.peers.as_ref().map(|peers| peers.enter_upgraded(&peer));
    drop(peer);
    connection.map(|_reason| drop(place))
}
