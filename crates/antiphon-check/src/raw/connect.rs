//! One connection: how it is made, and the handshake where there is one.

use std::io;
use std::time::Duration;

use tokio::time::timeout;

use super::address::AddressProtocol;
use super::codec::{Codec, HttpCodec, KEY, MAX_HEAD, PROOF, StreamCodec, WsCodec, headers_of};
use super::socket::RawSocket;
use super::target::Target;

/// A connection that is ready for calls.
pub struct RawConnection {
    pub socket: RawSocket,
    pub codec: Codec,
    /// What came with the handshake and is no part of it.
    pub early: Vec<u8>,
}

/// Connects, within the time if there is one.
pub async fn connect(target: &Target, limit: Option<Duration>) -> io::Result<RawConnection> {
    let link = link(target);
    match limit {
        None => link.await,
        Some(limit) => timeout(limit, link).await.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "it takes longer than --timeout"))
        }),
    }
}

async fn link(target: &Target) -> io::Result<RawConnection> {
    let mut socket = RawSocket::connect(target).await?;
    let mut early = Vec::new();
    let codec = match &target.address.protocol {
        AddressProtocol::Http { path, host } => {
            Codec::Http(HttpCodec::new(path, host, &target.headers))
        }
        AddressProtocol::Stream(framing) => Codec::Stream(StreamCodec::new(*framing)),
        AddressProtocol::Ws { path, host } => {
            early = upgrade(&mut socket, path, host, target).await?;
            Codec::Ws(WsCodec::new())
        }
    };
    Ok(RawConnection { socket, codec, early })
}

/// The opening handshake (RFC 6455, section 4.1); gives what came behind it.
pub(crate) async fn upgrade(
    socket: &mut RawSocket,
    path: &str,
    host: &str,
    target: &Target,
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

/// Where the answer to the handshake ends, once it is there and right.
fn upgraded(answer: &[u8]) -> io::Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(answer).map_err(io::Error::other)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial if answer.len() <= MAX_HEAD => return Ok(None),
        httparse::Status::Partial => return Err(io::Error::other("its HTTP head is too long")),
    };
    let status = response.code.unwrap_or_default();
    if status != 101 {
        return Err(io::Error::other(format!("the upgrade to a WebSocket gives status {status}")));
    }
    let named = |name| response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
    match named("sec-websocket-accept") {
        Some(proof) if proof.value == PROOF.as_bytes() => Ok(Some(length)),
        _ => Err(io::Error::other("the upgrade to a WebSocket is not proven")),
    }
}
