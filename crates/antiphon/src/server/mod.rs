//! The server: serves one handler on any number of endpoints.

mod accept;
mod bind;
mod endpoint_service;
#[cfg(feature = "http")]
mod http_settings;
mod listener;
mod threads;
#[cfg(feature = "tls")]
mod tls;
mod wire_service;

use std::fmt;
use std::io;
use std::sync::Arc;

use antiphon_core::Limits;
use tokio::task::JoinSet;

use crate::call::Peer;
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::endpoint::Endpoint;
use crate::engine::{OnConnect, Settings};
use crate::error::ErrorChain;
use crate::peer::ConnectionRegistry;
use crate::per_connection::PerConnection;
use crate::service::Handler;
use crate::tap::{Tap, Taps};
#[cfg(any(feature = "http", feature = "tls"))]
use crate::transport;

pub use bind::BindError;
pub use listener::Accept;
use listener::Listener;
use wire_service::WireService;

/// A server that is bound to its endpoints. It serves when [`serve`](Self::serve) is awaited.
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
/// server.serve_until(router, tokio::signal::ctrl_c()).await?;
/// # Ok(()) }
/// ```
#[must_use = "a server serves only when `serve` is awaited"]
pub struct Server {
    listeners: Vec<(Option<Endpoint>, Listener)>,
    limits: Option<Limits>,
    null_params: Option<bool>,
    threads: usize,
    on_connect: Option<OnConnect>,
    tap: Taps,
    dialect: Dialect,
    #[cfg(feature = "http")]
    http: transport::http::HttpSettings,
    #[cfg(feature = "tls")]
    tls: Option<transport::tls::TlsServer>,
}

impl Server {
    /// Sets the limits of the server and of its connections. The [dialect](Self::dialect) defines the default; see
    /// [`Dialect::limits`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets whether `"params": null` counts as absent, for clients that send it. By default the
    /// [dialect](Self::dialect) decides: [`Dialect::lsp`] accepts it, and plain JSON-RPC refuses it with
    /// -32600.
    pub fn null_params(mut self, accept: bool) -> Self {
        self.null_params = Some(accept);
        self
    }

    /// Serves on this many threads. The first is the caller's runtime; each further thread has a
    /// single-threaded runtime and an accept loop. The default is 1.
    ///
    /// A connection stays on its thread. This is faster than a multi-threaded runtime, which moves
    /// connections between threads. Call [`serve`](Self::serve) from a single-threaded runtime for the best
    /// result.
    ///
    /// A handler that blocks its thread delays everything on that thread: the calls of all its connections
    /// and their timeouts, cancellations and pings, new connections that the thread has accepted, and the
    /// shutdown. Other threads go on. Use [`Router::blocking`](crate::Router::blocking) or
    /// `spawn_blocking` for such work.
    ///
    /// Further threads accept from TCP and Unix listeners, and only on Unix. `stdio:`, `memory:`, transports
    /// and listeners that the application implements stay on the first thread.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Runs a closure for each new connection or HTTP request before it is served. The closure can attach
    /// extensions, which handlers find in [`Context::extensions`](crate::Context::extensions). A second
    /// call replaces the closure.
    ///
    /// It runs on the thread of the connection, so it must not block. If it panics, the connection is
    /// closed, or the HTTP request gets status 500.
    ///
    /// ```
    /// # use antiphon::{Client, Context, Router, Server};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// #[derive(Clone)]
    /// struct Region(&'static str);
    ///
    /// let server = Server::bind("tcp://127.0.0.1:0").await?.on_connect(|connection| {
    ///     let is_local = connection.remote.is_some_and(|address| address.ip().is_loopback());
    ///     connection.extensions.insert(Region(if is_local { "local" } else { "remote" }));
    /// });
    /// let endpoint = server.endpoint().clone();
    /// tokio::spawn(server.serve(Router::new().method("region", |(): (), cx: Context| async move {
    ///     Ok(cx.extensions().get::<Region>().map(|region| region.0))
    /// })));
    /// let client = Client::connect(endpoint).await?;
    /// assert_eq!(client.call::<String>("region", ()).await?, "local");
    /// # Ok(()) }
    /// ```
    pub fn on_connect(
        mut self,
        complete: impl Fn(&mut Connection) + Send + Sync + 'static,
    ) -> Self {
        self.on_connect = Some(Arc::new(complete));
        self
    }

    /// Passes every message of every connection and HTTP request to a [`Tap`]. A second call replaces the
    /// tap.
    pub fn tap(mut self, tap: impl Tap) -> Self {
        self.tap = Taps::new(tap);
        self
    }

    /// Sets the [`Dialect`]: cancellation, progress, the order of requests and notifications, whether
    /// `"params": null` is accepted, the codes of errors, and the defaults of limits and framings. The default
    /// is plain JSON-RPC. Cancellation, progress and order do not apply to a plain POST.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets the certificate of the server and the accepted client certificates for `https://`, `wss://`
    /// and `tls://`. Without it, serving one of these endpoints fails.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: impl Into<transport::tls::TlsServer>) -> Self {
        self.tls = Some(tls.into());
        self
    }

    /// Returns the endpoint of the server, with the port that the system has assigned. If it has several,
    /// returns the first.
    ///
    /// ```
    /// # use antiphon::{Client, Context, Router, Server};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    /// let server = Server::bind("tcp://127.0.0.1:0").await?;
    /// let endpoint = server.endpoint().clone();
    /// tokio::spawn(server.serve(router));
    /// let client = Client::connect(&endpoint).await?;
    /// # assert_eq!(client.call::<String>("ping", ()).await?, "pong");
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// Panics if the server has only transports ([`from_transport`](Self::from_transport)), which have
    /// no endpoint. [`endpoints`](Self::endpoints) is then empty.
    #[track_caller]
    pub fn endpoint(&self) -> &Endpoint {
        let first = self.listeners.iter().find_map(|(endpoint, _)| endpoint.as_ref());
        first.expect("a server of transports has no endpoint; bind one, or use `endpoints`")
    }

    /// Returns the endpoints of the server, with the ports that the system has assigned.
    pub fn endpoints(&self) -> Vec<&Endpoint> {
        self.listeners.iter().filter_map(|(endpoint, _)| endpoint.as_ref()).collect()
    }

    /// Serves until every endpoint has ended. `stdio:` and the transports of the application end by
    /// themselves; other endpoints never do.
    ///
    /// # Errors
    /// Fails at once if an endpoint with TLS has no certificate, or if a thread cannot start. Fails at the
    /// end if an endpoint has failed, for example because stdout could not be written. With several
    /// endpoints, such an error is logged when it occurs, and returned when the others have ended.
    ///
    /// # Panics
    /// Panics outside a Tokio runtime with I/O and time enabled.
    ///
    /// # Cancel safety
    /// Dropping the future stops the server without a shutdown: it closes all connections at once and
    /// cancels their calls. Use [`serve_until`](Self::serve_until) to let them finish.
    pub async fn serve(self, handler: impl Handler) -> io::Result<()> {
        self.serve_until(handler, std::future::pending::<()>()).await
    }

    /// Serves each connection with a handler of its own. The closure runs before the first message
    /// is read, so the server can send first; see [`PerConnection`]. It must not block. If it panics, the
    /// connection is closed.
    ///
    /// Errors, panics and cancel safety are those of [`serve`](Self::serve).
    ///
    /// ```
    /// use antiphon::{Client, Context, Router, Server};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::bind("memory:greeting").await?;
    /// tokio::spawn(server.serve_with(|_connection, peer| {
    ///     tokio::spawn(async move { peer.notify("welcome", ["hello"]).await });
    ///     Router::new()
    /// }));
    /// let (sender, mut greetings) = tokio::sync::mpsc::unbounded_channel();
    /// let handler = Router::new().notification("welcome", move |(text,): (String,), _cx: Context| {
    ///     let _ = sender.send(text);
    ///     async {}
    /// });
    /// let _client = Client::builder().handler(handler).connect("memory:greeting").await?;
    /// assert_eq!(greetings.recv().await.as_deref(), Some("hello"));
    /// # Ok(()) }
    /// ```
    pub async fn serve_with<F, H>(self, make: F) -> io::Result<()>
    where
        F: Fn(&Connection, Peer) -> H + Send + Sync + 'static,
        H: Handler,
    {
        self.serve(PerConnection::new(make)).await
    }

    /// Serves until `stop` is ready, with any output. Then it stops accepting, refuses new requests, waits for running calls
    /// up to [`Limits::shutdown_timeout`], and cancels the rest, which get an error.
    ///
    /// Panics and cancel safety are those of [`serve`](Self::serve).
    ///
    /// # Errors
    /// Like [`serve`](Self::serve). Returns `Ok` once `stop` was ready, even if an endpoint had failed
    /// before; that error was logged.
    ///
    /// ```
    /// use antiphon::{Client, Context, Router, Server};
    /// use tokio::sync::oneshot;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    /// let server = Server::bind("tcp://127.0.0.1:0").await?;
    /// let client = server.endpoint().clone();
    /// let (stop, stopped) = oneshot::channel::<()>();
    /// let serving = tokio::spawn(server.serve_until(router, stopped));
    /// let client = Client::connect(client).await?;
    /// assert_eq!(client.call::<String>("ping", ()).await?, "pong");
    /// drop(stop);
    /// serving.await??;
    /// # Ok(()) }
    /// ```
    pub async fn serve_until(
        self,
        handler: impl Handler,
        stop: impl Future + Send,
    ) -> io::Result<()> {
        #[cfg(feature = "tls")]
        self.check_tls()?;
        let limits = self.limits.unwrap_or_else(|| self.dialect.limits());
        let registry = ConnectionRegistry::new(limits.connections);
        #[cfg(feature = "http")]
        let http = self.http.in_dialect(&self.dialect);
        let settings = Settings {
            on_connect: self.on_connect,
            tap: self.tap,
            ..Settings::new(limits).in_dialect(self.dialect, self.null_params)
        };
        let service = WireService {
            handler: Arc::new(handler),
            settings: Arc::new(settings),
            registry,
            #[cfg(feature = "http")]
            http,
            #[cfg(feature = "tls")]
            tls: self.tls,
        };
        // Ends every connection when this future ends or is dropped.
        let _guard = service.registry.stop_on_drop();
        let _threads = threads::start(self.threads.saturating_sub(1), &self.listeners, &service)?;
        let mut acceptors = JoinSet::new();
        for (endpoint, listener) in self.listeners {
            acceptors.spawn(service.clone().accept(endpoint, listener));
        }
        let ended = async {
            let mut outcome = Ok(());
            while let Some(ended) = acceptors.join_next().await {
                let ended = ended.unwrap_or_else(|panic| Err(io::Error::other(panic)));
                // The error is returned when the others have ended, which may be never.
                if let (Err(error), false) = (&ended, acceptors.is_empty()) {
                    tracing::error!(error = %ErrorChain(error), "an endpoint has failed; the others go on");
                }
                outcome = outcome.and(ended);
            }
            outcome
        };
        let stopped = async { drop(stop.await) };
        let outcome = tokio::select! {
            () = stopped => Ok(()),
            outcome = ended => outcome,
        };
        acceptors.shutdown().await;
        service.registry.shutdown(service.settings.limits.shutdown_timeout).await;
        outcome
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("endpoints", &self.endpoints()).finish_non_exhaustive()
    }
}
