//! Connection setup: the socket, the codec, and the WebSocket handshake.

use std::io;
use std::time::Duration;

use tokio::time::timeout;

use super::address::AddressProtocol;
use super::codec::{
    Codec, CodecKind, HttpCodec, KEY, MAX_HEAD, PROOF, StreamCodec, WsCodec, headers_of,
};
use super::resolved_target::ResolvedTarget;
use super::socket::RawSocket;

/// A connection that is ready for calls.
pub struct RawConnection {
    /// The byte stream.
    pub socket: RawSocket,
    /// The codec of its messages.
    pub codec: Codec,
    /// Bytes that arrived after the handshake, and belong to the first messages.
    pub early: Vec<u8>,
}

/// Connects, within the time limit if there is one.
///
/// # Errors
///
/// The peer is unreachable, TLS or the WebSocket handshake fails, or the time is up.
pub async fn connect(
    target: &ResolvedTarget,
    limit: Option<Duration>,
) -> io::Result<RawConnection> {
    let link = link(target);
    match limit {
        None => link.await,
        Some(limit) => timeout(limit, link).await.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "it takes longer than --timeout"))
        }),
    }
}

async fn link(target: &ResolvedTarget) -> io::Result<RawConnection> {
    let mut socket = RawSocket::connect(target).await?;
    let mut early = Vec::new();
    let codec = match &target.address.protocol {
        AddressProtocol::Http { path, host } => {
            Codec(CodecKind::Http(HttpCodec::new(path, host, &target.headers)))
        }
        AddressProtocol::Stream(framing) => Codec(CodecKind::Stream(StreamCodec::new(*framing))),
        AddressProtocol::Ws { path, host } => {
            early = upgrade(&mut socket, path, host, target).await?;
            Codec(CodecKind::Ws(WsCodec::new()))
        }
    };
    Ok(RawConnection { socket, codec, early })
}

/// Performs the opening handshake (RFC 6455, section 4.1). Returns the bytes that follow it.
pub(crate) async fn upgrade(
    socket: &mut RawSocket,
    path: &str,
    host: &str,
    target: &ResolvedTarget,
) -> io::Result<Vec<u8>> {
    let mut request = format!("GET {path} HTTP/1.1\r\n").into_bytes();
    let own = [
        ("host", host),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", KEY),
    ];
    headers_of(&own, &target.headers, &mut request);
    request.extend_from_slice(b"\r\n");
    socket.write_all(&request).await?;
    let mut answer = Vec::new();
    loop {
        if socket.read(&mut answer).await? == 0 {
            return Err(io::Error::other("the server closed the connection in the handshake"));
        }
        if let Some(length) = upgraded(&answer)? {
            answer.drain(..length);
            return Ok(answer);
        }
    }
}

/// Returns the length of a correct handshake response; `None` while it is incomplete.
fn upgraded(answer: &[u8]) -> io::Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(answer).map_err(io::Error::other)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial if answer.len() <= MAX_HEAD => return Ok(None),
        httparse::Status::Partial => {
            return Err(io::Error::other("the HTTP head of the response is too long"));
        }
    };
    let status = response.code.unwrap_or_default();
    if status != 101 {
        return Err(io::Error::other(format!("the WebSocket handshake returns status {status}")));
    }
    let named = |name| response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
    match named("sec-websocket-accept") {
        Some(proof) if proof.value == PROOF.as_bytes() => Ok(Some(length)),
        _ => Err(io::Error::other(
            "the WebSocket handshake response has no valid Sec-WebSocket-Accept",
        )),
    }
}
