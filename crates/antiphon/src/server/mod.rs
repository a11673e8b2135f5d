//! Listening, on any number of endpoints at once.

mod peers;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::framing::Framing;
use antiphon_core::{ErrorObject, Limits, Outcome, Rules};
use tokio::task::JoinSet;

use crate::BoxFuture;
use crate::call::Invocation;
use crate::client::without_feature;
use crate::context::{Connection, Context, OnConnect};
use crate::endpoint::{Authority, Endpoint, EndpointError};
use crate::handler::Handler;
use crate::peer::{ENDED_WELL, Side, Wire, connect};
use crate::transport::{self, Transport};

pub(crate) use peers::Peers;

/// How long the acceptor rests when the system has no more files or memory to give.
const REST: Duration = Duration::from_millis(50);
/// How long a connection over the limit has to hear why.
const REFUSAL: Duration = Duration::from_secs(1);

/// A server that is bound and not yet serving.
///
/// ```no_run
/// use antiphon::{Context, Router, Server};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let router = Router::new().method("ping", |(): (), _cx: Context| async {
///     Ok("pong")
/// });
/// let server = Server::bind("tcp://127.0.0.1:0").await?.and("unix:/tmp/ping.sock").await?;
/// println!("{:?}", server.endpoints());
/// server.serve_until(router, async { drop(tokio::signal::ctrl_c().await) }).await?;
/// # Ok(()) }
/// ```
#[must_use = "it serves when `serve` is awaited"]
pub struct Server {
    listeners: Vec<(Endpoint, Listener)>,
    limits: Limits,
    null_params: bool,
    on_connect: Option<OnConnect>,
    #[cfg(feature = "http")]
    guard: transport::http::Guard,
}

enum Listener {
    #[cfg(feature = "http")]
    Http { socket: tokio::net::TcpListener, path: String, websocket_only: bool },
    #[cfg(feature = "tcp")]
    Tcp { socket: tokio::net::TcpListener, framing: Option<Framing> },
    #[cfg(all(feature = "unix", unix))]
    Unix { listener: transport::unix::Listener, framing: Option<Framing> },
    #[cfg(feature = "stdio")]
    Stdio { framing: Option<Framing> },
    #[cfg(feature = "memory")]
    Memory { listener: transport::memory::Listener },
}

impl Server {
    /// Binds an endpoint. A port of 0 picks a free one; [`endpoints`](Self::endpoints) says which.
    pub async fn bind(endpoint: &str) -> Result<Self, BindError> {
        let server = Self {
            listeners: Vec::new(),
            limits: Limits::default(),
            null_params: false,
            on_connect: None,
            #[cfg(feature = "http")]
            guard: transport::http::Guard::new(),
        };
        server.and(endpoint).await
    }

    /// Binds one more endpoint for the same service.
    pub async fn and(mut self, endpoint: &str) -> Result<Self, BindError> {
        let endpoint: Endpoint = endpoint.parse()?;
        let bound = listen(&endpoint).await;
        let bound =
            bound.map_err(|source| BindError::Failed { endpoint: endpoint.to_string(), source })?;
        self.listeners.push(bound);
        Ok(self)
    }

    /// The bounds of the server and its connections.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads `"params": null` as absent, for clients that write it so; it is an error otherwise.
    pub fn null_params(mut self, accept: bool) -> Self {
        self.null_params = accept;
        self
    }

    /// Attaches what the application knows to each new connection, or HTTP request, as extensions;
    /// handlers find them in [`Context::extensions`].
    pub fn on_connect(
        mut self,
        complete: impl Fn(&mut Connection) + Send + Sync + 'static,
    ) -> Self {
        self.on_connect = Some(Arc::new(complete));
        self
    }

    /// Which Hosts and Origins HTTP serves. On a loopback address, foreign Hosts are always refused
    /// unless they are allowed here.
    #[cfg(feature = "http")]
    pub fn guard(mut self, guard: transport::http::Guard) -> Self {
        self.guard = guard;
        self
    }

    /// Where it listens, with the ports that were picked.
    pub fn endpoints(&self) -> Vec<&Endpoint> {
        self.listeners.iter().map(|(endpoint, _)| endpoint).collect()
    }

    /// Serves until every endpoint has ended, which only `stdio:` does by itself.
    pub async fn serve(self, handler: impl Handler) -> io::Result<()> {
        self.serve_until(handler, std::future::pending()).await
    }

    /// Serves until this is ready; then stops accepting, lets what runs finish within the shutdown
    /// timeout, and cancels the rest.
    pub async fn serve_until(
        self,
        handler: impl Handler,
        stop: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let rules = Rules { null_params: self.null_params, ..self.limits.rules() };
        let service = Service {
            handler: Arc::new(handler),
            peers: Peers::new(self.limits.connections),
            limits: Arc::new(self.limits),
            rules,
            on_connect: self.on_connect,
            #[cfg(feature = "http")]
            guard: self.guard,
        };
        // However this ends, dropped in the middle included, nothing is served after it.
        let _guard = service.peers.end_guard();
        let mut acceptors = JoinSet::new();
        for (endpoint, listener) in self.listeners {
            acceptors.spawn(service.clone().accept(endpoint, listener));
        }
        let ended = async {
            let mut outcome = Ok(());
            while let Some(ended) = acceptors.join_next().await {
                outcome = outcome.and(ended.unwrap_or_else(|panic| Err(io::Error::other(panic))));
            }
            outcome
        };
        let outcome = tokio::select! {
            () = stop => Ok(()),
            outcome = ended => outcome,
        };
        acceptors.shutdown().await;
        service.peers.shutdown(service.limits.shutdown_timeout).await;
        outcome
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("endpoints", &self.endpoints()).finish_non_exhaustive()
    }
}

/// Why an endpoint cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address makes no sense.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The system refuses.
    #[error("cannot listen on {endpoint}")]
    Failed {
        /// Where.
        endpoint: String,
        /// What happened.
        source: io::Error,
    },
}

async fn listen(endpoint: &Endpoint) -> io::Result<(Endpoint, Listener)> {
    if let Endpoint::Http { path, .. } | Endpoint::Ws { path, .. } = endpoint
        && path.contains('?')
    {
        let reason = "a path is listened on without its query; leave the `?` away";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    Ok(match endpoint {
        #[cfg(feature = "http")]
        Endpoint::Http { authority, path } => {
            let (socket, authority) = bind_tcp(authority, 80).await?;
            let listener = Listener::Http { socket, path: path.clone(), websocket_only: false };
            (Endpoint::Http { authority, path: path.clone() }, listener)
        }
        #[cfg(feature = "ws")]
        Endpoint::Ws { authority, path } => {
            let (socket, authority) = bind_tcp(authority, 80).await?;
            let listener = Listener::Http { socket, path: path.clone(), websocket_only: true };
            (Endpoint::Ws { authority, path: path.clone() }, listener)
        }
        #[cfg(feature = "tcp")]
        Endpoint::Tcp { authority, framing } => {
            let (socket, authority) = bind_tcp(authority, 0).await?;
            let listener = Listener::Tcp { socket, framing: *framing };
            (Endpoint::Tcp { authority, framing: *framing }, listener)
        }
        #[cfg(all(feature = "unix", unix))]
        Endpoint::Unix { path, framing } => {
            let listener = transport::unix::listen(path).await?;
            (endpoint.clone(), Listener::Unix { listener, framing: *framing })
        }
        #[cfg(feature = "stdio")]
        Endpoint::Stdio { framing } => (endpoint.clone(), Listener::Stdio { framing: *framing }),
        #[cfg(feature = "memory")]
        Endpoint::Memory { name } => {
            let taken =
                || io::Error::new(io::ErrorKind::AddrInUse, "somebody listens under this name");
            let listener = transport::memory::Listener::bind(name).ok_or_else(taken)?;
            (endpoint.clone(), Listener::Memory { listener })
        }
        Endpoint::Exec { .. } => {
            let reason = "exec: can only be called; a server in a child process listens on stdio:";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        #[allow(unreachable_patterns, reason = "with every feature there is nothing left")]
        _ => return Err(without_feature(endpoint)),
    })
}

#[cfg(feature = "tcp")]
async fn bind_tcp(
    authority: &Authority,
    default_port: u16,
) -> io::Result<(tokio::net::TcpListener, Authority)> {
    let socket = tokio::net::TcpListener::bind(authority.with_default_port(default_port)).await?;
    let port = Some(socket.local_addr()?.port());
    Ok((socket, Authority { host: authority.host.clone(), port }))
}

/// What serves every connection of a server.
#[derive(Clone)]
struct Service {
    handler: Arc<dyn Handler>,
    limits: Arc<Limits>,
    rules: Rules,
    peers: Peers,
    on_connect: Option<OnConnect>,
    #[cfg(feature = "http")]
    guard: transport::http::Guard,
}

impl Service {
    async fn accept(self, endpoint: Endpoint, listener: Listener) -> io::Result<()> {
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
                let _ = stream.0.set_nodelay(true);
                self.serve(transport::tcp::wire(stream.0, framing, &self.limits));
            },
            #[cfg(all(feature = "unix", unix))]
            Listener::Unix { listener, framing } => loop {
                let Some(stream) = accepted(listener.socket.accept().await, &endpoint).await else {
                    continue;
                };
                self.serve(transport::unix::wire(stream.0, framing, &self.limits));
            },
            #[cfg(feature = "stdio")]
            Listener::Stdio { framing } => {
                self.serve_stdio(transport::stdio::wire(framing, &self.limits)).await
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
        if let Some(complete) = &self.on_connect {
            complete(&mut wire.facts);
        }
        let (limits, rules) = (self.limits.clone(), self.rules);
        let handler = Some(self.handler.clone());
        let (peer, connection) = connect(wire, Side { handler, limits, rules, tap: None });
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
        if let Some(complete) = &self.on_connect {
            complete(&mut wire.facts);
        }
        let connect = |wire, handler: Arc<dyn Handler>| {
            let (limits, rules) = (self.limits.clone(), self.rules);
            connect(wire, Side { handler: Some(handler), limits, rules, tap: None })
        };
        if let Some(place) = self.peers.admit() {
            let (peer, connection) = connect(wire, self.handler.clone());
            let entered = self.peers.enter(&peer);
            drop(self.peers.spawn(async move {
                let _held = (place, entered);
                connection.await
            }));
            return;
        }
        let Some(refusal) = self.peers.refusal() else { return };
        let (peer, connection) = connect(wire, Arc::new(Busy));
        peer.tell(&Busy::error());
        drop(self.peers.spawn(async move {
            let _held = refusal;
            tokio::time::timeout(REFUSAL, connection).await
        }));
    }

    #[cfg(feature = "http")]
    async fn accept_http(
        &self,
        socket: &tokio::net::TcpListener,
        path: &str,
        websocket_only: bool,
    ) {
        let loopback = socket.local_addr().is_ok_and(|address| address.ip().is_loopback());
        let guard = if loopback { self.guard.clone().loopback_only() } else { self.guard.clone() };
        let service = transport::http::HttpService::build(
            self.handler.clone(),
            self.limits.clone(),
            self.rules,
            guard,
        )
        .at_path(path)
        .among(self.peers.clone(), self.on_connect.clone());
        let service = if websocket_only { service.websocket_only() } else { service };
        let server = transport::http::listener::HttpServer::new(self.limits.clone());
        loop {
            let accepted = accepted(socket.accept().await, &"http").await;
            let Some((stream, remote)) = accepted else { continue };
            let _ = stream.set_nodelay(true);
            match self.peers.admit() {
                None => {
                    let Some(refusal) = self.peers.refusal() else { continue };
                    drop(self.peers.spawn(async move {
                        let _held = refusal;
                        transport::http::listener::refuse(stream).await;
                    }));
                }
                Some(place) => {
                    let stopping = self.peers.stopping();
                    let serving = server.serve(stream, service.for_remote(Some(remote)), stopping);
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
struct Busy;

impl Busy {
    fn error() -> ErrorObject {
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

async fn accepted<T>(accepted: io::Result<T>, endpoint: &impl fmt::Display) -> Option<T> {
    match accepted {
        Ok(connection) => Some(connection),
        Err(error) => {
            tracing::warn!(%error, %endpoint, "a connection could not be accepted");
            tokio::time::sleep(REST).await;
            None
        }
    }
}
