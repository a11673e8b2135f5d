//! Accepting connections by TLS.
//!
//! A handshake is the connection's own matter: it runs in the task that serves the connection after
//! it, takes its place among those allowed, and holds up neither the acceptor nor a shutdown.

use std::io;
use std::sync::Arc;

use antiphon_core::framing::Framing;
use antiphon_core::{ErrorObject, Id, encode};
use bytes::BytesMut;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::service::{Busy, REFUSAL, Service, accepted};
use super::{Endpoint, Listener, Server};
use crate::io::tls::{Acceptor, HTTP1, HTTP2, SERVED, TlsStream, Unsecured};
use crate::peer::connect;
#[cfg(feature = "http")]
use crate::transport::http::{HttpService, listener, remote::Remote};
use crate::transport::tcp::{self, tls_wire};

/// What is spoken above TLS.
enum Above {
    Stream(Option<Framing>),
    #[cfg(feature = "http")]
    Http(Box<(HttpService, listener::HttpServer)>),
}

impl Server {
    /// A certificate for each endpoint that needs one, or nothing is served.
    pub(super) fn check_tls(&self) -> io::Result<()> {
        let bare = self.endpoints().into_iter().find(|endpoint| endpoint.is_secure());
        match bare.filter(|_| self.tls.is_none()) {
            None => Ok(()),
            Some(endpoint) => Err(without_certificate(endpoint)),
        }
    }
}

fn without_certificate(endpoint: &Endpoint) -> io::Error {
    let text = format!("{endpoint} has no certificate to show; give the server one by `tls`");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

impl Service {
    pub(super) async fn accept_secure(
        self,
        endpoint: Endpoint,
        listener: Listener,
    ) -> io::Result<()> {
        let tls = self.tls.clone().ok_or_else(|| without_certificate(&endpoint))?;
        let limit = self.settings.limits.handshake_timeout;
        let (socket, above, protocols) = match listener {
            Listener::Tcp { socket, framing } => (socket, Above::Stream(framing), &[][..]),
            #[cfg(feature = "http")]
            Listener::Http { socket, path, websocket_only } => {
                let http = self.http(&socket, &path, websocket_only);
                let server = listener::HttpServer::new(self.settings.clone());
                let protocols = if websocket_only { &HTTP1[..] } else { &SERVED };
                (socket, Above::Http(Box::new((http, server))), protocols)
            }
            #[allow(unreachable_patterns, reason = "some features leave nothing over")]
            _ => return Err(io::Error::other(format!("{endpoint} cannot be secured"))),
        };
        let acceptor = Acceptor::new(&tls, protocols, limit);
        let secure = Arc::new(Secure { service: self, acceptor, above });
        secure.accept(&socket, &endpoint).await
    }
}

/// How to serve the connections of an endpoint.
struct Secure {
    service: Service,
    acceptor: Acceptor,
    above: Above,
}

impl Secure {
    async fn accept(self: Arc<Self>, socket: &TcpListener, endpoint: &Endpoint) -> io::Result<()> {
        let peers = &self.service.peers;
        loop {
            let Some((stream, _)) = accepted(socket.accept().await, endpoint).await else {
                continue;
            };
            tcp::prepare(&stream, &self.service.settings.limits);
            let this = self.clone();
            if let Some(place) = peers.admit() {
                drop(peers.spawn(async move {
                    let _held = place;
                    if let Some(stream) = this.shake(stream).await {
                        this.serve(stream).await;
                    }
                }));
            } else if let Some(refusal) = peers.refusal() {
                drop(peers.spawn(async move {
                    let _held = refusal;
                    let refusing = async {
                        if let Some(stream) = this.shake(stream).await {
                            this.refuse(stream).await;
                        }
                    };
                    timeout(REFUSAL, refusing).await
                }));
            }
        }
    }

    /// Shakes hands, unless the server stops first. Who speaks no TLS is told so.
    async fn shake(&self, stream: TcpStream) -> Option<TlsStream> {
        let stopping = self.service.peers.stopping();
        let shaken = tokio::select! {
            biased;
            () = stopping.cancelled() => return None,
            shaken = self.acceptor.accept(stream) => shaken,
        };
        match shaken {
            Ok(stream) => Some(stream),
            Err(unsecured) => {
                self.tell(unsecured).await;
                None
            }
        }
    }

    async fn tell(&self, unsecured: Unsecured) {
        match &self.above {
            Above::Stream(framing) => unsecured.tell(&speak_tls(*framing)).await,
            #[cfg(feature = "http")]
            Above::Http(_) => unsecured.tell(SPEAK_HTTPS).await,
        }
    }

    async fn serve(&self, stream: TlsStream) {
        let service = &self.service;
        match &self.above {
            Above::Stream(framing) => {
                let mut wire = tls_wire(stream, *framing, &service.settings.limits);
                if service.settings.complete(&mut wire.facts).is_err() {
                    return;
                }
                let (peer, connection) = connect(wire, service.side(service.handler.clone()));
                let _entered = service.peers.enter(&peer);
                drop(peer);
                connection.await;
            }
            #[cfg(feature = "http")]
            Above::Http(http) => {
                let (http, server) = &**http;
                let remote = Remote::new(stream.remote()).secured(stream.peer_certificates());
                let stopping = service.peers.stopping();
                server.serve(stream, http.for_one(remote), stopping).await;
            }
        }
    }

    /// Says that there is no room.
    async fn refuse(&self, stream: TlsStream) {
        let service = &self.service;
        match &self.above {
            Above::Stream(framing) => {
                let wire = tls_wire(stream, *framing, &service.settings.limits);
                let (peer, connection) = connect(wire, service.side(Arc::new(Busy)));
                peer.link().send_error(&Busy::error());
                drop(peer);
                connection.await;
            }
            #[cfg(feature = "http")]
            Above::Http(http) => {
                let (http, server) = &**http;
                let is_http2 = stream.protocol() == Some(HTTP2[0]);
                let remote = Remote::new(stream.remote()).secured(stream.peer_certificates());
                server.refuse(stream, http.for_one(remote), is_http2).await;
            }
        }
    }
}

/// What a client hears that speaks HTTP here.
#[cfg(feature = "http")]
const SPEAK_HTTPS: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\
    content-length: 36\r\nconnection: close\r\n\r\nthis port speaks TLS; call https://\n";

/// What a client hears that speaks JSON-RPC here.
fn speak_tls(framing: Option<Framing>) -> BytesMut {
    let error = ErrorObject::invalid_request().with_data("this port speaks TLS; call tls://");
    let (mut message, mut text) = (BytesMut::new(), BytesMut::new());
    encode::response(&Id::Null, &Err(error), &mut message);
    framing.unwrap_or(Framing::Line).encode(&message, &mut text);
    text
}
