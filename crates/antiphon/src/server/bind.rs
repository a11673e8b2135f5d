//! Binds a server to an endpoint, a listener or a transport.

use std::io;

use futures_core::Stream;
use futures_util::StreamExt as _;

use super::Server;
#[cfg(any(feature = "tcp", all(feature = "unix", unix)))]
use super::listener::SourceKind;
use super::listener::{Accept, Connected, Listener, Protocol, Source};
use crate::connection::Connection;
use crate::dialect::Dialect;
#[cfg(feature = "tcp")]
use crate::endpoint::Authority;
#[cfg(feature = "http")]
use crate::endpoint::web_port;
use crate::endpoint::{Endpoint, EndpointError, without_feature};
use crate::peer::Wire;
use crate::tap::Taps;
#[cfg(any(feature = "http", feature = "unix", feature = "stdio", feature = "memory"))]
use crate::transport;
use crate::transport::Transport;

impl Server {
    /// Binds an [`Endpoint`], or the text of one. Port 0 picks a free port;
    /// [`endpoint`](Self::endpoint) returns it.
    ///
    /// A TCP or Unix listener queues connections from now on; they are served once
    /// [`serve`](Self::serve) is awaited. The socket file of a Unix server that has died is replaced. A
    /// socket that is in use, and a file that is not a socket, are errors. The server removes its socket
    /// file when it ends.
    ///
    /// # Errors
    /// Fails if the text is not an endpoint, if its feature is disabled, if servers cannot listen on it
    /// (`exec:`), or if the system refuses the address. A missing certificate is an error of
    /// [`serve`](Self::serve).
    ///
    /// # Panics
    /// Panics outside a Tokio runtime with I/O enabled, for an endpoint with a socket.
    pub async fn bind(
        endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
    ) -> Result<Self, BindError> {
        Self::unbound().and(endpoint).await
    }

    /// Binds one more endpoint for the same service. Fails and panics like [`bind`](Self::bind).
    ///
    /// The error drops the server, and so closes the endpoints that were bound before.
    pub async fn and(
        mut self,
        endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
    ) -> Result<Self, BindError> {
        let endpoint = endpoint.try_into().map_err(Into::into)?;
        let bound = bind(&endpoint).await.map_err(|source| failed(&endpoint, source))?;
        self.listeners.push(bound);
        Ok(self)
    }

    /// Serves the connections of a listener that the application has bound, such as one that it
    /// inherited from a service manager.
    ///
    /// The endpoint names the protocol, such as `ws://` or `tcp+header://`, and for HTTP the path. Its
    /// address is ignored. Any protocol works on any listener, but TLS needs a TCP listener.
    ///
    /// # Errors
    /// Fails if the text is not an endpoint, if its feature is disabled, if it is `exec:`, `stdio:` or
    /// `memory:`, or if it has TLS and the listener is not a TCP listener.
    ///
    /// # Examples
    /// ```
    /// # use antiphon::{Client, Context, Router, Server};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let server = Server::from_listener(listener, "tcp://localhost:0")?;
    /// let endpoint = server.endpoint().clone();
    /// tokio::spawn(server.serve(router));
    /// let client = Client::connect(endpoint).await?;
    /// assert_eq!(client.call::<String>("ping", ()).await?, "pong");
    /// # Ok(()) }
    /// ```
    pub fn from_listener(
        listener: impl Accept,
        endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
    ) -> Result<Self, BindError> {
        Self::unbound().and_listener(listener, endpoint)
    }

    /// Adds a listener, like [`from_listener`](Self::from_listener).
    pub fn and_listener(
        mut self,
        listener: impl Accept,
        endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
    ) -> Result<Self, BindError> {
        let endpoint = endpoint.try_into().map_err(Into::into)?;
        let address = listener.local_addr();
        let Source(source) = listener.into_source();
        let protocol = protocol(&endpoint).map_err(|source| failed(&endpoint, source))?;
        if endpoint.is_secure() && !source.carries_tls() {
            let reason = "TLS needs a TCP listener; use an endpoint without TLS";
            let source = io::Error::new(io::ErrorKind::InvalidInput, reason);
            return Err(failed(&endpoint, source));
        }
        let endpoint = match address {
            Some(address) => endpoint.at(address),
            None => endpoint,
        };
        self.listeners.push((Some(endpoint), Listener::Streams(source, protocol)));
        Ok(self)
    }

    /// Serves one duplex transport. The server ends when the transport ends, with an error if the
    /// transport has failed.
    ///
    /// `connection` describes the transport: its name, the remote address, and the extensions that
    /// handlers see.
    ///
    /// The end of its input means that the peer is gone, and cancels running calls: a peer that
    /// only closes its sending half gets no more responses.
    /// [`Limits::stall_timeout`](crate::Limits::stall_timeout) is checked while
    /// messages cannot be written, but not within an incoming message, because only the transport knows
    /// where one begins.
    ///
    /// ```
    /// use antiphon::{Client, Connection, Context, Router, Server, transport::memory};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (ours, theirs) = memory::pair();
    /// let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    /// let server = Server::from_transport(ours, Connection::new("pair"));
    /// tokio::spawn(server.serve(router));
    /// let client = Client::over(theirs);
    /// assert_eq!(client.call::<String>("ping", ()).await?, "pong");
    /// # Ok(()) }
    /// ```
    pub fn from_transport(transport: impl Transport, connection: Connection) -> Self {
        let mut server = Self::unbound();
        server.listeners.push((None, Listener::Single(connected(transport, connection))));
        server
    }

    /// Serves transports that the application accepts, each as one connection like
    /// [`from_transport`](Self::from_transport), under the limits and the shutdown of this server. The
    /// server ends when the stream and all its connections have ended. A transport over
    /// [`Limits::connections`](crate::Limits::connections) is dropped.
    ///
    /// ```
    /// use antiphon::transport::memory::{self, MemoryTransport};
    /// use antiphon::{Client, Connection, Context, Router, Server};
    /// use tokio::sync::mpsc;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    /// let (accepted, mut incoming) = mpsc::channel::<MemoryTransport>(16);
    /// let transports = futures_util::stream::poll_fn(move |cx| {
    ///     let next = incoming.poll_recv(cx);
    ///     next.map(|next| next.map(|transport| (transport, Connection::new("pair"))))
    /// });
    /// tokio::spawn(Server::from_transports(transports).serve(router));
    ///
    /// let (ours, theirs) = memory::pair();
    /// accepted.send(theirs).await?;
    /// assert_eq!(Client::over(ours).call::<String>("ping", ()).await?, "pong");
    /// # Ok(()) }
    /// ```
    pub fn from_transports<T: Transport>(
        transports: impl Stream<Item = (T, Connection)> + Send + 'static,
    ) -> Self {
        let mut server = Self::unbound();
        let transports = transports.map(|(transport, connection)| connected(transport, connection));
        server.listeners.push((None, Listener::Transports(Box::pin(transports))));
        server
    }

    fn unbound() -> Self {
        Self {
            listeners: Vec::new(),
            limits: None,
            null_params: None,
            threads: 1,
            on_connect: None,
            tap: Taps::default(),
            dialect: Dialect::plain(),
            #[cfg(feature = "http")]
            http: transport::http::HttpSettings::default(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

/// The error of [`Server::bind`] and of the other functions that bind an endpoint or a listener.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The text is not an endpoint.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The system refuses the address, or a server cannot use the endpoint.
    #[error("cannot listen on {endpoint}")]
    Failed {
        /// The endpoint.
        endpoint: String,
        /// The cause, with a remedy if the address is in use, not available or not permitted.
        source: io::Error,
    },
}

fn failed(endpoint: &Endpoint, source: io::Error) -> BindError {
    BindError::Failed { endpoint: endpoint.to_string(), source: with_remedy(endpoint, source) }
}

/// Adds the remedy to an error of the system. Our own errors name it already.
fn with_remedy(endpoint: &Endpoint, error: io::Error) -> io::Error {
    let is_unix = matches!(endpoint, Endpoint::Unix { .. });
    let remedy = match error.kind() {
        _ if error.raw_os_error().is_none() => return error,
        io::ErrorKind::AddrInUse if is_unix => {
            "choose another path, stop the server that listens there, or remove the file if it is no \
            socket"
        }
        io::ErrorKind::AddrInUse => {
            "choose another port, or :0 for a free one, or stop the other server"
        }
        io::ErrorKind::AddrNotAvailable => {
            "no network interface has this address; 0.0.0.0 listens on all of them"
        }
        io::ErrorKind::PermissionDenied if is_unix => {
            "choose another path, or allow this user to write to its directory"
        }
        io::ErrorKind::PermissionDenied => {
            "choose a port above 1023, or give the process the right to use this one"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{error}; {remedy}"))
}

fn connected(transport: impl Transport, connection: Connection) -> Connected {
    Box::new(move |service| service.serve_single(Wire::new(transport, connection)))
}

/// Binds an endpoint. Returns it with the port that the system has assigned.
async fn bind(endpoint: &Endpoint) -> io::Result<(Option<Endpoint>, Listener)> {
    match endpoint {
        #[cfg(feature = "http")]
        Endpoint::Http { authority, secure, .. } | Endpoint::Ws { authority, secure, .. } => {
            bind_tcp(endpoint, authority, web_port(*secure)).await
        }
        #[cfg(feature = "tcp")]
        Endpoint::Tcp { authority, .. } => bind_tcp(endpoint, authority, 0).await,
        #[cfg(all(feature = "unix", unix))]
        Endpoint::Unix { path, .. } => {
            let socket = transport::unix::listen(path).await?;
            let listener = Listener::Streams(SourceKind::Unix(socket), protocol(endpoint)?);
            Ok((Some(endpoint.clone()), listener))
        }
        #[cfg(feature = "stdio")]
        Endpoint::Stdio { framing } => {
            let framing = *framing;
            let listener = Listener::Single(Box::new(move |service| {
                let wire = transport::stdio::wire(framing, &service.settings);
                service.serve_single(wire)
            }));
            Ok((Some(endpoint.clone()), listener))
        }
        #[cfg(feature = "memory")]
        Endpoint::Memory { name } => {
            let taken = || {
                io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "the name is already in use; drop the other server, or choose another name",
                )
            };
            let listener = transport::memory::MemoryListener::bind(name).ok_or_else(taken)?;
            Ok((Some(endpoint.clone()), Listener::Memory(listener)))
        }
        other => Err(not_listened_on(other)),
    }
}

#[cfg(feature = "tcp")]
async fn bind_tcp(
    endpoint: &Endpoint,
    authority: &Authority,
    default_port: u16,
) -> io::Result<(Option<Endpoint>, Listener)> {
    let protocol = protocol(endpoint)?;
    let socket = tokio::net::TcpListener::bind(authority.with_default_port(default_port)).await?;
    let port = Some(socket.local_addr()?.port());
    let endpoint = endpoint.with_authority(Authority { host: authority.host.clone(), port });
    Ok((Some(endpoint), Listener::Streams(SourceKind::Tcp(socket), protocol)))
}

/// The protocol that an endpoint names for byte streams.
fn protocol(endpoint: &Endpoint) -> io::Result<Protocol> {
    match endpoint {
        #[cfg(not(feature = "tls"))]
        secure if secure.is_secure() => Err(without_feature(secure)),
        Endpoint::Http { path, .. } | Endpoint::Ws { path, .. } if path.contains('?') => {
            let reason =
                "the endpoint of a server has no query; remove the `?` and what follows it";
            Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
        }
        #[cfg(feature = "http")]
        Endpoint::Http { path, .. } => {
            Ok(Protocol::Http { path: path.clone(), websocket_only: false })
        }
        #[cfg(feature = "ws")]
        Endpoint::Ws { path, .. } => {
            Ok(Protocol::Http { path: path.clone(), websocket_only: true })
        }
        #[cfg(feature = "tcp")]
        Endpoint::Tcp { framing, .. } => Ok(Protocol::Framed(*framing)),
        #[cfg(all(feature = "unix", unix))]
        Endpoint::Unix { framing, .. } => Ok(Protocol::Framed(*framing)),
        other => Err(not_listened_on(other)),
    }
}

fn not_listened_on(endpoint: &Endpoint) -> io::Error {
    let reason = match endpoint {
        Endpoint::Exec { .. } => {
            "exec: is for clients only; a server in a child process listens on stdio:"
        }
        #[cfg(feature = "stdio")]
        Endpoint::Stdio { .. } => "stdio: has no listener; use Server::bind",
        #[cfg(feature = "memory")]
        Endpoint::Memory { .. } => "memory: has no listener; use Server::bind",
        other => return without_feature(other),
    };
    io::Error::new(io::ErrorKind::Unsupported, reason)
}
