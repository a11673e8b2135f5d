//! The accept loop, which is the same for every kind of listener.
//!
//! It applies the connection limit. A connection over the limit receives an error; if too many receive
//! one already, it is dropped.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::endpoint_service::EndpointService;
use super::listener::{BoxedStream, Connected, Listener, Protocol, SourceKind};
use super::wire_service::WireService;
use crate::BoxFuture;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::peer::ConnectionPermit;
#[cfg(feature = "memory")]
use crate::transport::memory::{self, MemoryTransport};

/// The pause after an accept error, such as when the system has no more file descriptors.
const ERROR_PAUSE: Duration = Duration::from_millis(50);
/// The time in which a connection over the limit must read its error.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection that was accepted and is not served yet.
pub(super) trait Accepted: Send + 'static {
    /// The type that serves it.
    type Server;

    /// Serves the connection until it ends.
    fn serve(self, server: &Arc<Self::Server>, permit: ConnectionPermit) -> BoxFuture<'static, ()>;

    /// Sends the error that the connection limit is reached.
    fn refuse(self, server: &Arc<Self::Server>) -> BoxFuture<'static, ()>;
}

impl WireService {
    /// Serves the connections of one endpoint until its listener ends.
    pub(super) async fn accept(
        self,
        endpoint: Option<Endpoint>,
        listener: Listener,
    ) -> io::Result<()> {
        let name = endpoint.as_ref().map_or_else(|| "transport".to_owned(), Endpoint::to_string);
        match listener {
            Listener::Streams(source, protocol) => {
                let protocol = self.in_dialect(protocol, endpoint.as_ref());
                let secure = endpoint.is_some_and(|endpoint| endpoint.is_secure());
                let endpoint = EndpointService::new(self, secure, &source, &protocol)?;
                accept_streams(Arc::new(endpoint), source, &name).await;
                Ok(())
            }
            #[cfg(feature = "memory")]
            Listener::Memory(mut listener) => {
                let next = |cx: &mut Poller<'_>| listener.poll_accept(cx).map(|next| next.map(Ok));
                accept_all(&self.clone(), &Arc::new(self), &name, next).await;
                Ok(())
            }
            Listener::Transports(mut transports) => {
                let open = TaskTracker::new();
                let next = |cx: &mut Poller<'_>| {
                    let next = transports.as_mut().poll_next(cx);
                    next.map(|next| next.map(|it| Ok(AcceptedTransport(it, open.token()))))
                };
                accept_all(&self.clone(), &Arc::new(self), &name, next).await;
                open.close();
                open.wait().await;
                Ok(())
            }
            Listener::Single(connected) => connected(&self).await,
        }
    }

    /// Returns the protocol. A Unix socket without a framing in its endpoint gets the framing of the dialect.
    fn in_dialect(&self, protocol: Protocol, endpoint: Option<&Endpoint>) -> Protocol {
        match (protocol, endpoint, &self.settings.dialect) {
            (Protocol::Framed(None), Some(Endpoint::Unix { .. }), Some(dialect)) => {
                Protocol::Framed(dialect.unix_framing)
            }
            (protocol, ..) => protocol,
        }
    }
}

async fn accept_streams(endpoint: Arc<EndpointService>, source: SourceKind, name: &str) {
    let service = &endpoint.service;
    match source {
        #[cfg(feature = "tcp")]
        SourceKind::Tcp(socket) => {
            let next = |cx: &mut Poller<'_>| socket.poll_accept(cx).map(Some);
            accept_all(service, &endpoint, name, next).await;
        }
        #[cfg(all(feature = "unix", unix))]
        SourceKind::Unix(listener) => {
            let next = |cx: &mut Poller<'_>| listener.socket.poll_accept(cx).map(Some);
            accept_all(service, &endpoint, name, next).await;
        }
        SourceKind::Foreign(mut listener) => {
            let next = |cx: &mut Poller<'_>| {
                let accepted = listener.poll_accept(cx);
                accepted.map_ok(|(stream, remote)| ForeignStream(stream, remote)).map(Some)
            };
            accept_all(service, &endpoint, name, next).await;
        }
    }
}

/// Accepts until the listener ends, and serves each connection in a task of its own.
async fn accept_all<A: Accepted>(
    service: &WireService,
    server: &Arc<A::Server>,
    name: &str,
    mut next: impl FnMut(&mut Poller<'_>) -> Poll<Option<io::Result<A>>>,
) {
    let registry = &service.registry;
    while let Some(accepted) = poll_fn(&mut next).await {
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if is_out_of_descriptors(&error) {
                    let text = "cannot accept a connection; raise the limit of file descriptors";
                    tracing::warn!(%error, endpoint = name, text);
                } else {
                    tracing::warn!(%error, endpoint = name, "cannot accept a connection");
                }
                sleep(ERROR_PAUSE).await;
                continue;
            }
        };
        if let Some(permit) = registry.admit() {
            drop(registry.spawn(accepted.serve(server, permit)));
        } else if let Some(refusal) = registry.refusal() {
            let refusing = timeout(REFUSAL_TIMEOUT, accepted.refuse(server));
            drop(registry.spawn(Box::pin(async move {
                let _held = refusal;
                let _ = refusing.await;
            })));
        }
    }
}

/// Whether the system or the process has no file descriptor left (`ENFILE`, `EMFILE`).
fn is_out_of_descriptors(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

#[cfg(feature = "tcp")]
impl Accepted for (tokio::net::TcpStream, SocketAddr) {
    type Server = EndpointService;

    fn serve(
        self,
        endpoint: &Arc<EndpointService>,
        permit: ConnectionPermit,
    ) -> BoxFuture<'static, ()> {
        endpoint.serve_tcp(self.0, permit)
    }

    fn refuse(self, endpoint: &Arc<EndpointService>) -> BoxFuture<'static, ()> {
        endpoint.refuse_tcp(self.0)
    }
}

#[cfg(all(feature = "unix", unix))]
impl Accepted for (tokio::net::UnixStream, tokio::net::unix::SocketAddr) {
    type Server = EndpointService;

    fn serve(
        self,
        endpoint: &Arc<EndpointService>,
        permit: ConnectionPermit,
    ) -> BoxFuture<'static, ()> {
        endpoint.serve_stream(self.0, Connection::new("unix"), permit)
    }

    fn refuse(self, endpoint: &Arc<EndpointService>) -> BoxFuture<'static, ()> {
        endpoint.refuse_stream(self.0, Connection::new("unix"))
    }
}

/// A connection of a listener that the application implements.
struct ForeignStream(BoxedStream, Option<SocketAddr>);

impl Accepted for ForeignStream {
    type Server = EndpointService;

    fn serve(
        self,
        endpoint: &Arc<EndpointService>,
        permit: ConnectionPermit,
    ) -> BoxFuture<'static, ()> {
        let facts = Connection::new("custom").with_remote(self.1);
        endpoint.serve_stream(self.0, facts, permit)
    }

    fn refuse(self, endpoint: &Arc<EndpointService>) -> BoxFuture<'static, ()> {
        endpoint.refuse_stream(self.0, Connection::new("custom").with_remote(self.1))
    }
}

#[cfg(feature = "memory")]
impl Accepted for MemoryTransport {
    type Server = WireService;

    fn serve(self, service: &Arc<WireService>, permit: ConnectionPermit) -> BoxFuture<'static, ()> {
        service.serve_wire(memory::wire(self), permit)
    }

    fn refuse(self, service: &Arc<WireService>) -> BoxFuture<'static, ()> {
        service.refuse_wire(memory::wire(self))
    }
}

/// A transport that the application has accepted, and the token that counts it as open.
struct AcceptedTransport(Connected, TaskTrackerToken);

impl Accepted for AcceptedTransport {
    type Server = WireService;

    fn serve(self, service: &Arc<WireService>, permit: ConnectionPermit) -> BoxFuture<'static, ()> {
        let Self(connected, open) = self;
        let served = connected(service);
        Box::pin(async move {
            let _held = (permit, open);
            let _ = served.await;
        })
    }

    /// Drops the transport: only the application knows how to report an error on it.
    fn refuse(self, _: &Arc<WireService>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}
