//! TLS on the endpoints of a server.

use std::io;

use antiphon_core::framing::Framing;
use antiphon_core::{ErrorObject, Id, encode};
use bytes::BytesMut;

use super::listener::Protocol;
use super::wire_service::WireService;
use super::{Endpoint, Server};
use crate::io::tls::Acceptor;
#[cfg(feature = "http")]
use crate::io::tls::{HTTP1, SERVED};

impl Server {
    /// Fails if an endpoint needs a certificate and the server has none.
    pub(super) fn check_tls(&self) -> io::Result<()> {
        let secure = self.endpoints().into_iter().find(|endpoint| endpoint.is_secure());
        match secure.filter(|_| self.tls.is_none()) {
            None => Ok(()),
            Some(endpoint) => Err(without_certificate(endpoint)),
        }
    }
}

fn without_certificate(endpoint: &Endpoint) -> io::Error {
    let text = format!("{endpoint} has no certificate; pass one to `Server::tls`");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// The TLS acceptor of an endpoint, which negotiates the HTTP versions that the endpoint serves.
pub(super) fn acceptor(service: &WireService, protocol: &Protocol) -> io::Result<Acceptor> {
    let missing = || io::Error::other("the server has no certificate; pass one to `Server::tls`");
    let tls = service.tls.as_ref().ok_or_else(missing)?;
    let protocols = match protocol {
        Protocol::Framed(_) => &[][..],
        #[cfg(feature = "http")]
        Protocol::Http { websocket_only: true, .. } => &HTTP1[..],
        #[cfg(feature = "http")]
        Protocol::Http { .. } => &SERVED,
    };
    Ok(Acceptor::new(tls, protocols, service.settings.limits.handshake_timeout))
}

/// The reply to a client that speaks plain HTTP.
#[cfg(feature = "http")]
pub(super) const REQUIRES_HTTPS: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\
    content-length: 36\r\nconnection: close\r\n\r\nthis port speaks TLS; call https://\n";

/// The reply to a client that speaks plain JSON-RPC.
pub(super) fn requires_tls(framing: Option<Framing>) -> BytesMut {
    let error = ErrorObject::invalid_request().with_data("this port speaks TLS; call tls://");
    let (mut message, mut text) = (BytesMut::new(), BytesMut::new());
    encode::response(&Id::Null, &Err(error), &mut message);
    framing.unwrap_or(Framing::Line).encode(&message, &mut text);
    text
}
