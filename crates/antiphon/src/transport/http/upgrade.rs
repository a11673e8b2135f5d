//! From an HTTP request to a WebSocket (RFC 6455, section 4.2).

use std::future::ready;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::{Parts, downcast};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::header_values::lists;
use super::prefixed_stream::PrefixedStream;
use super::refusal::HttpRefusal;
use super::remote::Remote;
use super::response::{self, HttpResponse};
use super::service_state::ServiceState;
use crate::connection::{Connection, HttpHead, HttpRequestHead};
use crate::endpoint::WS;
use crate::engine::Dispatcher;
use crate::io::Metered;
#[cfg(feature = "tls")]
use crate::io::tls::TlsStream;
use crate::peer::{ConnectionConfig, Wire, connect};
use crate::transport::ws::handshake::accept_key;
use crate::transport::{Transport, ws};

pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    lists(headers, &UPGRADE, "websocket")
}

/// Accepts the upgrade, and serves the connection once it has taken place.
pub(super) fn accept<B>(
    request: &mut Request<B>,
    state: &Arc<ServiceState>,
    remote: &Remote,
) -> Result<HttpResponse, HttpRefusal> {
    let headers = request.headers();
    if request.method() != Method::GET || request.version() < Version::HTTP_11 {
        let reason = "a WebSocket starts with GET and HTTP/1.1\n";
        return Err(HttpRefusal::InvalidUpgrade(reason));
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(HttpRefusal::UnsupportedWebSocketVersion);
    }
    let Some(accepted) = headers.get(SEC_WEBSOCKET_KEY).and_then(accept_key) else {
        let reason = "sec-websocket-key must be 16 bytes in base64\n";
        return Err(HttpRefusal::InvalidUpgrade(reason));
    };
    let head = HttpRequestHead {
        method: Method::GET,
        target: PathAndQuery::try_from(
            request.uri().path_and_query().map_or("/", |target| target.as_str()),
        )
        .ok(),
        headers: copy_headers(headers),
    };
    let upgrade = hyper::upgrade::on(&mut *request);
    let extensions = Some(request.extensions()).filter(|all| !all.is_empty());
    let extensions = extensions.cloned().unwrap_or_default();
    // Held until the task of the WebSocket is spawned.
    let _admitted = state.admit()?;
    let mut facts = remote.connection(WS, HttpHead::Parsed(head), extensions);
    if state.dispatcher.settings.complete(&mut facts).is_err() {
        return Err(HttpRefusal::Failed);
    }
    // Boxed, since a future keeps space for its arguments: the task would hold them twice.
    let serving = Box::pin(serve_upgraded(upgrade, facts, state.clone()));
    match &state.peers {
        Some(peers) => drop(peers.spawn(serving)),
        None => drop(tokio::spawn(serving)),
    }
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    Ok(response::with_headers(StatusCode::SWITCHING_PROTOCOLS, headers))
}

/// Copies headers. The values of hyper are slices of its read buffer and would keep it alive.
fn copy_headers(headers: &HeaderMap) -> HeaderMap {
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

/// Built of combinators, since an async block keeps the space of values that it has moved out.
fn serve_upgraded(
    upgrade: OnUpgrade,
    facts: Connection,
    state: Arc<ServiceState>,
) -> impl Future<Output = ()> {
    upgrade.then(move |upgraded| match upgraded {
        Ok(upgraded) => open(upgraded, facts, &state).left_future(),
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
    state: &ServiceState,
) -> impl Future<Output = ()> + use<> {
    // The bare socket takes many frames in one system call; its wrapper does not.
    match downcast::<ListenerStream<TcpStream>>(upgraded) {
        Ok(parts) => take_over(parts, facts, state).left_future(),
        Err(upgraded) => open_other(upgraded, facts, state).right_future(),
    }
}

/// Like [`open`], for a stream that is not a bare TCP socket.
fn open_other(
    upgraded: Upgraded,
    facts: Connection,
    state: &ServiceState,
) -> impl Future<Output = ()> + use<> {
    #[cfg(feature = "tls")]
    let upgraded = match downcast::<ListenerStream<TlsStream>>(upgraded) {
        Ok(parts) => return take_over(parts, facts, state).left_future(),
        Err(upgraded) => upgraded,
    };
    let wire = ws::serve(TokioIo::new(upgraded), &[], facts, &state.dispatcher.settings.limits);
    let serving = serve(wire, state);
    #[cfg(feature = "tls")]
    let serving = serving.right_future();
    serving
}

/// A stream as the listener passes it to hyper.
type ListenerStream<S> = TokioIo<PrefixedStream<Metered<S>>>;

/// Takes the stream out of its wrappers and serves it.
fn take_over<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    parts: Parts<ListenerStream<S>>,
    facts: Connection,
    state: &ServiceState,
) -> impl Future<Output = ()> + use<S> {
    let Parts { io, read_buf, .. } = parts;
    let (stream, unread) = io.into_inner().into_parts();
    let unread = [read_buf, unread].concat();
    let limits = &state.dispatcher.settings.limits;
    serve(ws::serve(stream.into_inner(), &unread, facts, limits), state)
}

fn serve<T: Transport>(wire: Wire<T>, state: &ServiceState) -> impl Future<Output = ()> + use<T> {
    let Dispatcher { handler, settings } = state.dispatcher.clone();
    let config = ConnectionConfig { handler: Some(handler), settings };
    let (peer, connection) = connect(wire, config);
    let registered = state.peers.as_ref().map(|peers| peers.enter_upgraded(&peer));
    drop(peer);
    connection.map(|_reason| drop(registered))
}
