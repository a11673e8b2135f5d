//! Accepting connections, and serving each in a task of its own.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{ErrorObject, Outcome};

use super::Listener;
use crate::BoxFuture;
use crate::call::Invocation;
use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::engine::Settings;
use crate::handler::Handler;
use crate::peer::{ConnectionRegistry, ENDED_WELL, Side, Wire, connect};
#[cfg(feature = "http")]
use crate::transport::http::{HttpService, remote::Remote};
use crate::transport::{self, Transport};

/// How long the acceptor rests when the system has no more files or memory to give.
const REST: Duration = Duration::from_millis(50);
/// How long a connection over the limit has to hear why.
pub(super) const REFUSAL: Duration = Duration::from_secs(1);

/// What serves every connection of a server.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) handler: Arc<dyn Handler>,
    pub(super) settings: Arc<Settings>,
    pub(super) peers: ConnectionRegistry,
    #[cfg(feature = "http")]
    pub(super) http: transport::http::HttpSettings,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<transport::tls::TlsServer>,
}

impl Service {
    pub(super) async fn accept(self, endpoint: Endpoint, listener: Listener) -> io::Result<()> {
        #[cfg(feature = "tls")]
        if endpoint.is_secure() {
            return self.accept_secure(endpoint, listener).await;
        }
        match listener {
            #[cfg(feature = "http")]
            Listener::Http { socket, path, websocket_only } => {
                self.accept_http(&socket, &path, websocket_only).await;
                Ok(())
            }
            #[cfg(feature = "tcp")]
            Listener::Tcp { socket, framing } => loop {
                let Some(stream) = accepted(socket.accept().await, &endpoint).await else {
                    continue;
                };
                transport::tcp::prepare(&stream.0, &self.settings.limits);
                self.serve(transport::tcp::wire(stream.0, framing, &self.settings.limits));
            },
            #[cfg(all(feature = "unix", unix))]
            Listener::Unix { listener, framing } => loop {
                let Some(stream) = accepted(listener.socket.accept().await, &endpoint).await else {
                    continue;
                };
                self.serve(transport::unix::wire(stream.0, framing, &self.settings.limits));
            },
            #[cfg(feature = "stdio")]
            Listener::Stdio { framing } => {
                self.serve_stdio(transport::stdio::wire(framing, &self.settings.limits)).await
            }
            #[cfg(feature = "memory")]
            Listener::Memory { mut listener } => {
                while let Some(transport) = listener.accept().await {
                    self.serve(transport::memory::wire(transport));
                }
                Ok(())
            }
        }
    }

    /// Serves the one connection there is. An output that cannot be written to is an error: the end
    /// of input is not.
    #[cfg(feature = "stdio")]
    async fn serve_stdio(&self, mut wire: Wire<impl Transport>) -> io::Result<()> {
        if self.settings.complete(&mut wire.facts).is_err() {
            return Err(io::Error::other("what completes a connection panicked"));
        }
        let (peer, connection) = connect(wire, self.side(self.handler.clone()));
        let entered = self.peers.enter(&peer);
        let serving = self.peers.spawn(async move {
            let _entered = entered;
            connection.await
        });
        match serving.await {
            Ok(Some(reason)) if !ENDED_WELL.contains(&&*reason) => Err(io::Error::other(&*reason)),
            _ => Ok(()),
        }
    }

    /// Serves a connection in a task of its own; one too many is told so, and one far too many not
    /// even that.
    fn serve(&self, mut wire: Wire<impl Transport>) {
        if self.settings.complete(&mut wire.facts).is_err() {
            return;
        }
        if let Some(place) = self.peers.admit() {
            let (peer, connection) = connect(wire, self.side(self.handler.clone()));
            let entered = self.peers.enter(&peer);
            drop(self.peers.spawn(async move {
                let _held = (place, entered);
                connection.await
            }));
            return;
        }
        let Some(refusal) = self.peers.refusal() else { return };
        let (peer, connection) = connect(wire, self.side(Arc::new(Busy)));
        peer.link().send_error(&Busy::error());
        drop(self.peers.spawn(async move {
            let _held = refusal;
            tokio::time::timeout(REFUSAL, connection).await
        }));
    }

    pub(super) fn side(&self, handler: Arc<dyn Handler>) -> Side {
        Side { handler: Some(handler), settings: self.settings.clone() }
    }

    /// What is served on a port that speaks HTTP.
    #[cfg(feature = "http")]
    pub(super) fn http(
        &self,
        socket: &tokio::net::TcpListener,
        path: &str,
        websocket_only: bool,
    ) -> HttpService {
        let loopback = socket.local_addr().is_ok_and(|address| address.ip().is_loopback());
        let http = self.http.clone().loopback_only(loopback);
        let service = HttpService::build(self.handler.clone(), self.settings.clone(), http)
            .at_path(path)
            .among(self.peers.clone());
        if websocket_only { service.websocket_only() } else { service }
    }

    #[cfg(feature = "http")]
    async fn accept_http(
        &self,
        socket: &tokio::net::TcpListener,
        path: &str,
        websocket_only: bool,
    ) {
        let service = self.http(socket, path, websocket_only);
        let server = transport::http::listener::HttpServer::new(self.settings.clone());
        loop {
            let accepted = accepted(socket.accept().await, &"http").await;
            let Some((stream, remote)) = accepted else { continue };
            transport::tcp::prepare(&stream, &self.settings.limits);
            match self.peers.admit() {
                None => {
                    let Some(refusal) = self.peers.refusal() else { continue };
                    let refusing =
                        server.refuse(stream, service.for_one(Remote::new(Some(remote))), false);
                    drop(self.peers.spawn(async move {
                        let _held = refusal;
                        refusing.await;
                    }));
                }
                Some(place) => {
                    let stopping = self.peers.stopping();
                    let serving =
                        server.serve(stream, service.for_one(Remote::new(Some(remote))), stopping);
                    drop(self.peers.spawn(async move {
                        let _held = place;
                        serving.await;
                    }));
                }
            }
        }
    }
}

/// Serves a connection that there is no room for.
pub(super) struct Busy;

impl Busy {
    pub(super) fn error() -> ErrorObject {
        ErrorObject::server_busy("too many connections")
    }
}

impl Handler for Busy {
    fn call(&self, _: Invocation, _: Context) -> BoxFuture<'static, Outcome> {
        Box::pin(std::future::ready(Err(Self::error())))
    }

    fn notify(&self, _: Invocation, _: Context) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

pub(super) async fn accepted<T>(
    accepted: io::Result<T>,
    endpoint: &impl fmt::Display,
) -> Option<T> {
    match accepted {
        Ok(connection) => Some(connection),
        Err(error) => {
            tracing::warn!(%error, %endpoint, "a connection could not be accepted");
            tokio::time::sleep(REST).await;
            None
        }
    }
}
