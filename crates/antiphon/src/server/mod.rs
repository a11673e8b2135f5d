//! Listening, on any number of endpoints at once.

#[cfg(feature = "http")]
mod http_settings;
#[cfg(feature = "tls")]
mod secure;
mod service;
mod threads;

use std::fmt;
use std::io;
use std::sync::Arc;

use antiphon_core::framing::Framing;
use antiphon_core::{Limits, Rules};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::endpoint::{Authority, Endpoint, EndpointError, web_port, without_feature};
use crate::engine::{OnConnect, Settings};
use crate::handler::Handler;
use crate::peer::ConnectionRegistry;
use crate::transport;

use service::Service;
use threads::Shared;

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
    threads: usize,
    on_connect: Option<OnConnect>,
    dialect: Dialect,
    #[cfg(feature = "http")]
    http: transport::http::HttpSettings,
    #[cfg(feature = "tls")]
    tls: Option<transport::tls::TlsServer>,
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

impl Listener {
    /// The same socket for another thread, where that is possible.
    #[cfg(unix)]
    fn share(&self) -> Option<io::Result<Shared>> {
        Some(match self {
            #[cfg(feature = "http")]
            Self::Http { socket, path, websocket_only } => {
                let (path, websocket_only) = (path.clone(), *websocket_only);
                again(socket).map(|socket| {
                    Shared::new(move || {
                        let socket = tokio::net::TcpListener::from_std(socket.into())?;
                        Ok(Self::Http { socket, path, websocket_only })
                    })
                })
            }
            #[cfg(feature = "tcp")]
            Self::Tcp { socket, framing } => {
                let framing = *framing;
                again(socket).map(|socket| {
                    Shared::new(move || {
                        let socket = tokio::net::TcpListener::from_std(socket.into())?;
                        Ok(Self::Tcp { socket, framing })
                    })
                })
            }
            #[cfg(feature = "unix")]
            Self::Unix { listener, framing } => {
                let framing = *framing;
                again(&listener.socket).map(|socket| {
                    Shared::new(move || {
                        let listener = transport::unix::Listener::again(socket.into())?;
                        Ok(Self::Unix { listener, framing })
                    })
                })
            }
            #[allow(unreachable_patterns, reason = "some features leave nothing over")]
            _ => return None,
        })
    }

    #[cfg(not(unix))]
    fn share(&self) -> Option<io::Result<Shared>> {
        None
    }
}

/// The same socket again.
#[cfg(unix)]
fn again(socket: &impl std::os::fd::AsFd) -> io::Result<std::os::fd::OwnedFd> {
    socket.as_fd().try_clone_to_owned()
}

impl Server {
    /// Binds an endpoint. A port of 0 picks a free one; [`endpoints`](Self::endpoints) says which.
    pub async fn bind(endpoint: &str) -> Result<Self, BindError> {
        let server = Self {
            listeners: Vec::new(),
            limits: Limits::default(),
            null_params: false,
            threads: 1,
            on_connect: None,
            dialect: Dialect::plain(),
            #[cfg(feature = "http")]
            http: transport::http::HttpSettings::default(),
            #[cfg(feature = "tls")]
            tls: None,
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

    /// Serves from this many threads: the runtime that it is served in, and for each further one a
    /// single-threaded runtime with an acceptor of its own.
    ///
    /// A connection stays on its thread, which is faster than a runtime of many threads that hand
    /// connections to each other; but a handler that blocks its thread holds up all connections
    /// there. Best served in a single-threaded runtime. `stdio:` and `memory:` stay on the first.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Attaches what the application knows to each new connection, or HTTP request, as extensions;
    /// handlers find them in [`Context::extensions`](crate::Context::extensions).
    pub fn on_connect(
        mut self,
        complete: impl Fn(&mut Connection) + Send + Sync + 'static,
    ) -> Self {
        self.on_connect = Some(Arc::new(complete));
        self
    }

    /// Which notifications mean more than the specification says, on whatever can call back: how a
    /// call is cancelled, and how its progress is told.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// What `https://`, `wss://` and `tls://` show, and which clients they take. Without it, a server
    /// on one of these serves nothing.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: impl Into<transport::tls::TlsServer>) -> Self {
        self.tls = Some(tls.into());
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
        #[cfg(feature = "tls")]
        self.check_tls()?;
        let rules = Rules { null_params: self.null_params, ..self.limits.rules() };
        let peers = ConnectionRegistry::new(self.limits.connections);
        let settings = Settings {
            rules,
            on_connect: self.on_connect,
            dialect: self.dialect.unless_plain(),
            ..Settings::new(self.limits)
        };
        let service = Service {
            handler: Arc::new(handler),
            settings: Arc::new(settings),
            peers,
            #[cfg(feature = "http")]
            http: self.http,
            #[cfg(feature = "tls")]
            tls: self.tls,
        };
        // However this ends, dropped in the middle included, nothing is served after it.
        let _guard = service.peers.stop_on_drop();
        let _threads = threads::start(self.threads.saturating_sub(1), &self.listeners, &service)?;
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
        service.peers.shutdown(service.settings.limits.shutdown_timeout).await;
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
        #[cfg(not(feature = "tls"))]
        secure if secure.is_secure() => return Err(without_feature(secure)),
        #[cfg(feature = "http")]
        Endpoint::Http { authority, path, secure } => {
            let (socket, authority) = bind_tcp(authority, web_port(*secure)).await?;
            let listener = Listener::Http { socket, path: path.clone(), websocket_only: false };
            (Endpoint::Http { authority, path: path.clone(), secure: *secure }, listener)
        }
        #[cfg(feature = "ws")]
        Endpoint::Ws { authority, path, secure } => {
            let (socket, authority) = bind_tcp(authority, web_port(*secure)).await?;
            let listener = Listener::Http { socket, path: path.clone(), websocket_only: true };
            (Endpoint::Ws { authority, path: path.clone(), secure: *secure }, listener)
        }
        #[cfg(feature = "tcp")]
        Endpoint::Tcp { authority, framing, secure } => {
            let (socket, authority) = bind_tcp(authority, 0).await?;
            let listener = Listener::Tcp { socket, framing: *framing };
            (Endpoint::Tcp { authority, framing: *framing, secure: *secure }, listener)
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
