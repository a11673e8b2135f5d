//! The settings of a client.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::Limits;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::timeout;
use tower_layer::Layer;

use super::reconnect::{Reconnect, ReconnectingCaller};
use super::{Client, ConnectError};
use crate::call::Caller;
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::endpoint::{Endpoint, EndpointError};
#[cfg(feature = "memory")]
use crate::engine::Settings;
#[cfg(feature = "http")]
use crate::error::BoxError;
#[cfg(feature = "jwt")]
use crate::layer::JwtSecret;
use crate::peer::Wire;
#[cfg(feature = "memory")]
use crate::peer::{self, ConnectionConfig};
use crate::service::Handler;
use crate::service::{CallerService, LayeredCaller, OutgoingService};
use crate::tap::{Tap, Taps};
#[cfg(any(feature = "http", feature = "memory", feature = "tls"))]
use crate::transport;
use crate::transport::Transport;

/// The settings of a client. [`connect`](Self::connect) opens the connection.
///
/// ```
/// use antiphon::{Client, ConnectError};
/// use std::time::Duration;
///
/// # async fn example() -> Result<(), ConnectError> {
/// let client = Client::builder()
///     .timeout(Duration::from_secs(5))
///     .connect("tcp://127.0.0.1:8650")
///     .await?;
/// # drop(client);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a builder connects only when `connect` is awaited"]
pub struct ClientBuilder {
    pub(super) limits: Limits,
    pub(super) timeout: Option<Duration>,
    pub(super) headers: HeaderMap,
    pub(super) http2: bool,
    #[cfg(feature = "tls")]
    pub(super) tls: transport::tls::TlsClient,
    pub(super) handler: Option<Arc<dyn Handler>>,
    pub(super) tap: Taps,
    pub(super) dialect: Dialect,
    pub(super) null_params: Option<bool>,
    pub(super) reconnect: Option<Reconnect>,
    pub(super) layers: Vec<CallerLayer>,
    #[cfg(feature = "http")]
    pub(super) http_layers: Vec<transport::http::client::HttpClientLayer>,
    #[cfg(feature = "jwt")]
    pub(super) jwt: Option<JwtSecret>,
}

/// A layer that wraps the caller of a client.
pub(super) type CallerLayer = Arc<dyn Fn(Arc<dyn Caller>) -> Arc<dyn Caller> + Send + Sync>;

/// Wraps a caller in a layer.
pub(super) fn layered(
    layer: &impl Layer<CallerService, Service: OutgoingService>,
    inner: Arc<dyn Caller>,
) -> Arc<dyn Caller> {
    Arc::new(LayeredCaller::new(layer.layer(CallerService::new(&inner)), inner))
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            timeout: None,
            headers: HeaderMap::new(),
            http2: false,
            #[cfg(feature = "tls")]
            tls: transport::tls::TlsClient::new(),
            handler: None,
            tap: Taps::default(),
            dialect: Dialect::plain(),
            null_params: None,
            reconnect: None,
            layers: Vec::new(),
            #[cfg(feature = "http")]
            http_layers: Vec::new(),
            #[cfg(feature = "jwt")]
            jwt: None,
        }
    }
}

impl ClientBuilder {
    /// Sets the limits of the connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the timeout of each call, batch and subscribe request of the client, unless it has its own.
    ///
    /// It does not bound the time to connect: [`Limits::handshake_timeout`] does. It does not apply to
    /// [`Client::forward`], to [`Client::notify`], or to calls through [`Client::caller`]. With [`reconnect`](Self::reconnect), those wait for a connection without a limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the dialect: the notifications that cancel calls and report their progress. Plain JSON-RPC,
    /// the default, has none.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets whether `"params": null` in a message of the server counts as absent. By default the
    /// [dialect](Self::dialect) decides: [`Dialect::lsp`] accepts it, and plain JSON-RPC refuses it with
    /// -32600.
    pub fn null_params(mut self, accept: bool) -> Self {
        self.null_params = Some(accept);
        self
    }

    /// Opens a new connection when one has ended, with these settings.
    ///
    /// Pending calls fail with [`CallError::Interrupted`](crate::CallError::Interrupted), or are repeated
    /// if they are declared idempotent. Subscriptions are renewed.
    ///
    /// To detect a lost connection, [`Limits::keep_alive`] is 30 seconds unless it is set. A WebSocket sends
    /// pings after this idle time, and TCP uses the keep-alive of the system. `unix:`, `exec:` and `memory:`
    /// have no probes.
    ///
    /// It has no effect over HTTP, where each call uses any connection or opens one, and on a transport that
    /// is passed to [`over`](Self::over).
    pub fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = Some(reconnect);
        self
    }

    /// Adds a header to each HTTP request, or to the one that opens a WebSocket.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Authenticates with tokens of the Engine API of Ethereum nodes. Each HTTP request and each upgrade to a WebSocket
    /// has a new token, including those of a reconnect. The token replaces any other `Authorization` header. It has no
    /// effect on transports without HTTP.
    ///
    /// ```no_run
    /// use antiphon::Client;
    /// use antiphon::layer::JwtSecret;
    ///
    /// # async fn example() -> Result<Client, Box<dyn std::error::Error>> {
    /// let secret = JwtSecret::read("/var/lib/node/jwt.hex")?;
    /// Ok(Client::builder().jwt(secret).connect("http://127.0.0.1:8551").await?)
    /// # }
    /// ```
    #[cfg(feature = "jwt")]
    pub fn jwt(mut self, secret: JwtSecret) -> Self {
        self.jwt = Some(secret);
        self
    }

    /// Requires HTTP/2, so that many calls share one connection.
    ///
    /// Without it, `https://` uses HTTP/2 if the server offers it. With it, calls to a server without HTTP/2
    /// fail. `http://` cannot negotiate: with it, the client sends HTTP/2 at once.
    pub fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// Sets the trusted certificates and the client certificate for `https://`, `wss://` and `tls://`.
    /// By default, the certificate authorities of the system are trusted.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: impl Into<transport::tls::TlsClient>) -> Self {
        self.tls = tls.into();
        self
    }

    /// Wraps each call in a `tower` layer, as [`Client::layer`] does. The layer added last is the outermost.
    ///
    /// ```
    /// use antiphon::layer::Concurrency;
    /// use antiphon::{Client, ConnectError};
    ///
    /// # async fn example() -> Result<Client, ConnectError> {
    /// Client::builder().layer(Concurrency::new(8)).connect("ws://127.0.0.1:8650").await
    /// # }
    /// ```
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<CallerService, Service: OutgoingService> + Send + Sync + 'static,
    {
        self.layers.push(Arc::new(move |inner| layered(&layer, inner)));
        self
    }

    /// Wraps each POST of an `http://` endpoint in a `tower` layer: a service from
    /// `http::Request<HttpBody>` to `http::Response<B>`, with any body. It may change the path, the headers
    /// and the bodies. The layers of `tower-http` work. The layer added last is the outermost.
    ///
    /// [`Limits::frame_bytes`] limits the body of a response, before and after the layers.
    ///
    /// The layers do not see the request that opens a WebSocket, so [`connect`](Self::connect) to a `ws://`
    /// endpoint fails with one. Set its headers with [`header`](Self::header). Transports without HTTP ignore
    /// them.
    ///
    /// ```
    /// use antiphon::http::{HeaderValue, Request, header::USER_AGENT};
    /// use antiphon::transport::http::HttpBody;
    /// use antiphon::{Client, ConnectError};
    /// use tower::util::MapRequestLayer;
    /// use tower_http::decompression::DecompressionLayer;
    ///
    /// # async fn example() -> Result<Client, ConnectError> {
    /// let agent = MapRequestLayer::new(|mut request: Request<HttpBody>| {
    ///     request.headers_mut().insert(USER_AGENT, HeaderValue::from_static("ledger/1.0"));
    ///     request
    /// });
    /// let builder = Client::builder().http_layer(agent).http_layer(DecompressionLayer::new());
    /// builder.connect("http://127.0.0.1:8650").await
    /// # }
    /// ```
    #[cfg(feature = "http")]
    pub fn http_layer<L, B>(mut self, layer: L) -> Self
    where
        L: Layer<transport::http::HttpClientService> + Send + Sync + 'static,
        L::Service: tower_service::Service<
                http::Request<transport::http::HttpBody>,
                Response = http::Response<B>,
                Error: Into<BoxError> + 'static,
                Future: Send + 'static,
            > + Clone
            + Send
            + Sync
            + 'static,
        B: http_body::Body<Data = bytes::Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.http_layers.push(transport::http::client::boxed_layer(layer));
        self
    }

    /// Serves the calls of the server. Without a handler, the server gets the error -32601 for each call.
    pub fn handler(mut self, handler: impl Handler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Passes every message to a [`Tap`]. A second tap replaces the first.
    pub fn tap(mut self, tap: impl Tap) -> Self {
        self.tap = Taps::new(tap);
        self
    }

    /// Connects to an [`Endpoint`], or to the text of one.
    ///
    /// `http://` and `https://` connect at the first call, so this does not find out whether the server can
    /// be reached.
    ///
    /// # Errors
    /// Fails if the text is not an endpoint, if its feature is not enabled, if the server cannot be reached,
    /// or if the TLS or WebSocket handshake fails or takes longer than [`Limits::handshake_timeout`].
    pub async fn connect(
        self,
        endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
    ) -> Result<Client, ConnectError> {
        let endpoint = endpoint.try_into().map_err(Into::into)?;
        // Boxed, because the futures of all kinds of connections with their settings are large.
        Box::pin(self.connect_to(&endpoint)).await
    }

    async fn connect_to(mut self, endpoint: &Endpoint) -> Result<Client, ConnectError> {
        #[cfg(feature = "http")]
        if matches!(endpoint, Endpoint::Ws { .. }) && !self.http_layers.is_empty() {
            let source = io::Error::new(
                io::ErrorKind::Unsupported,
                "an `http_layer` does not apply to a WebSocket; use `header` for the request that opens it",
            );
            return Err(ConnectError::Failed { endpoint: endpoint.to_string(), source });
        }
        let layers = std::mem::take(&mut self.layers);
        let client = match self.reconnect.take() {
            // Every call over HTTP uses any connection, or opens one.
            Some(policy) if !matches!(endpoint, Endpoint::Http { .. }) => {
                let timeout = self.timeout;
                let caller = Box::pin(ReconnectingCaller::connect(self, endpoint, policy)).await?;
                Client::reconnecting(caller, timeout)
            }
            _ => self.connect_once(endpoint).await?,
        };
        Ok(client.in_layers(layers))
    }

    /// Turns on keep-alive pings, unless they are set. A client can only reconnect if it detects that the
    /// connection is lost.
    pub(crate) fn kept_alive(mut self) -> Self {
        self.limits.keep_alive.get_or_insert(KEEP_ALIVE);
        self
    }

    pub(crate) async fn connect_once(self, endpoint: &Endpoint) -> Result<Client, ConnectError> {
        let limit = self.limits.handshake_timeout;
        let hint =
            if endpoint.is_secure() { "; does the server use TLS on this port?" } else { "" };
        let late = || {
            io::Error::new(io::ErrorKind::TimedOut, format!("no response within {limit:?}{hint}"))
        };
        // Boxed, because the future is as large as the largest handshake.
        let opening = Box::pin(self.open(endpoint));
        let connected = timeout(limit, opening).await.unwrap_or_else(|_| Err(late()));
        connected.map_err(|source| ConnectError::Failed { endpoint: endpoint.to_string(), source })
    }

    /// Creates a client over a transport that the application has opened, and spawns the task that drives it.
    ///
    /// Headers and reconnection have no effect. The end of the input cancels the requests of the server that
    /// are running. A message is passed on whole, so the stall timeout does not see its parts.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn over(self, transport: impl Transport) -> Client {
        self.over_with(transport, Connection::new("custom"))
    }

    /// Like [`over`](Self::over), with the connection properties that this client's handler reads from
    /// [`Context::connection`](crate::Context::connection).
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn over_with(mut self, transport: impl Transport, connection: Connection) -> Client {
        let layers = std::mem::take(&mut self.layers);
        self.attach(Wire::new(transport, connection)).in_layers(layers)
    }

    /// Creates a client of a handler in this process; see [`Client::in_process`]. The handler has the
    /// limits, the dialect and `null_params` of this client.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    #[cfg(feature = "memory")]
    pub fn in_process(self, handler: impl Handler) -> Client {
        let (ours, theirs) = transport::memory::pair();
        let settings =
            Settings::new(self.limits.clone()).in_dialect(self.dialect.clone(), self.null_params);
        let config =
            ConnectionConfig { handler: Some(Arc::new(handler)), settings: Arc::new(settings) };
        let (_, served) = peer::connect(transport::memory::wire(theirs), config);
        tokio::spawn(served);
        self.over_with(ours, Connection::new("memory"))
    }
}

/// The idle time after which a reconnecting client sends a ping.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("limits", &self.limits)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
