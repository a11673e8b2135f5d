//! The accept loop: one for every kind of listener.
//!
//! It decides who gets a place. A connection over the limit learns why; one far over it is dropped.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::listener::{BoxedStream, Connected, Listener, SourceKind};
use super::port::Port;
use super::service::Service;
use crate::BoxFuture;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::peer::ConnectionPermit;
#[cfg(feature = "memory")]
use crate::transport::memory::{self, MemoryTransport};

/// How long the loop rests when the system has no more files or memory to give.
const REST: Duration = Duration::from_millis(50);
/// How long a connection over the limit has to read why it is refused.
const REFUSAL: Duration = Duration::from_secs(1);

/// A connection that was accepted and is not served yet.
pub(super) trait Accepted: Send + 'static {
    /// What serves it.
    type Port;

    /// Serves it until it ends.
    fn serve(self, port: &Arc<Self::Port>, permit: ConnectionPermit) -> BoxFuture<'static, ()>;

    /// Tells it that there is no room.
    fn refuse(self, port: &Arc<Self::Port>) -> BoxFuture<'static, ()>;
}

impl Service {
    /// Serves the connections of one endpoint until there are no more.
    pub(super) async fn accept(
        self,
        endpoint: Option<Endpoint>,
        listener: Listener,
    ) -> io::Result<()> {
        let name = endpoint.as_ref().map_or_else(|| "transport".to_owned(), Endpoint::to_string);
        match listener {
            Listener::Streams(source, protocol) => {
                let secure = endpoint.is_some_and(|endpoint| endpoint.is_secure());
                let port = Port::new(self, secure, &source, &protocol)?;
                accept_streams(Arc::new(port), source, &name).await;
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
}

async fn accept_streams(port: Arc<Port>, source: SourceKind, name: &str) {
    let service = &port.service;
    match source {
        #[cfg(feature = "tcp")]
        SourceKind::Tcp(socket) => {
            let next = |cx: &mut Poller<'_>| socket.poll_accept(cx).map(Some);
            accept_all(service, &port, name, next).await;
        }
        #[cfg(all(feature = "unix", unix))]
        SourceKind::Unix(listener) => {
            let next = |cx: &mut Poller<'_>| listener.socket.poll_accept(cx).map(Some);
            accept_all(service, &port, name, next).await;
        }
        SourceKind::Foreign(mut listener) => {
            let next = |cx: &mut Poller<'_>| {
                let accepted = listener.poll_accept(cx);
                accepted.map_ok(|(stream, remote)| ForeignStream(stream, remote)).map(Some)
            };
            accept_all(service, &port, name, next).await;
        }
    }
}

/// Accepts until the source ends, and serves each connection in a task of its own.
async fn accept_all<A: Accepted>(
    service: &Service,
    port: &Arc<A::Port>,
    name: &str,
    mut next: impl FnMut(&mut Poller<'_>) -> Poll<Option<io::Result<A>>>,
) {
    let registry = &service.registry;
    while let Some(accepted) = poll_fn(&mut next).await {
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, endpoint = name, "cannot accept a connection");
                sleep(REST).await;
                continue;
            }
        };
        if let Some(permit) = registry.admit() {
            drop(registry.spawn(accepted.serve(port, permit)));
        } else if let Some(refusal) = registry.refusal() {
            let refusing = timeout(REFUSAL, accepted.refuse(port));
            drop(registry.spawn(Box::pin(async move {
                let _held = refusal;
                let _ = refusing.await;
            })));
        }
    }
}

#[cfg(feature = "tcp")]
impl Accepted for (tokio::net::TcpStream, SocketAddr) {
    type Port = Port;

    fn serve(self, port: &Arc<Port>, permit: ConnectionPermit) -> BoxFuture<'static, ()> {
        port.serve_tcp(self.0, permit)
    }

    fn refuse(self, port: &Arc<Port>) -> BoxFuture<'static, ()> {
        port.refuse_tcp(self.0)
    }
}

#[cfg(all(feature = "unix", unix))]
impl Accepted for (tokio::net::UnixStream, tokio::net::unix::SocketAddr) {
    type Port = Port;

    fn serve(self, port: &Arc<Port>, permit: ConnectionPermit) -> BoxFuture<'static, ()> {
        port.serve_stream(self.0, Connection::new("unix"), permit)
    }

    fn refuse(self, port: &Arc<Port>) -> BoxFuture<'static, ()> {
        port.refuse_stream(self.0, Connection::new("unix"))
    }
}

/// A connection of a foreign listener.
struct ForeignStream(BoxedStream, Option<SocketAddr>);

impl Accepted for ForeignStream {
    type Port = Port;

    fn serve(self, port: &Arc<Port>, permit: ConnectionPermit) -> BoxFuture<'static, ()> {
        let facts = Connection::new("custom").from(self.1);
        port.serve_stream(self.0, facts, permit)
    }

    fn refuse(self, port: &Arc<Port>) -> BoxFuture<'static, ()> {
        port.refuse_stream(self.0, Connection::new("custom").from(self.1))
    }
}

#[cfg(feature = "memory")]
impl Accepted for MemoryTransport {
    type Port = Service;

    fn serve(self, service: &Arc<Service>, permit: ConnectionPermit) -> BoxFuture<'static, ()> {
        service.serve_wire(memory::wire(self), permit)
    }

    fn refuse(self, service: &Arc<Service>) -> BoxFuture<'static, ()> {
        service.refuse_wire(memory::wire(self))
    }
}

/// A transport that the application has accepted, and its entry among the open ones.
struct AcceptedTransport(Connected, TaskTrackerToken);

impl Accepted for AcceptedTransport {
    type Port = Service;

    fn serve(self, service: &Arc<Service>, permit: ConnectionPermit) -> BoxFuture<'static, ()> {
        let Self(connected, open) = self;
        let served = connected(service);
        Box::pin(async move {
            let _held = (permit, open);
            let _ = served.await;
        })
    }

    /// A transport of the application is dropped: only it knows how to say more.
    fn refuse(self, _: &Arc<Service>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}
