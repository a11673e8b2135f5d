//! How to connect: the settings of a client.

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
use crate::endpoint::Endpoint;
use crate::engine::Settings;
use crate::peer::{self, ConnectionConfig, Wire};
use crate::service::Handler;
use crate::service::{CallerService, LayeredCaller, OutgoingService};
use crate::tap::{Tap, Taps};
use crate::transport::{self, Transport};

/// How to connect.
#[derive(Clone)]
#[must_use = "`connect` does it"]
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
    pub(super) reconnect: Option<Reconnect>,
    pub(super) layers: Vec<Layering>,
    #[cfg(feature = "http")]
    pub(super) http_layers: Vec<transport::http::client::HttpClientLayer>,
}

/// A layer that was put around what is called.
pub(super) type Layering = Arc<dyn Fn(Arc<dyn Caller>) -> Arc<dyn Caller> + Send + Sync>;

pub(super) fn layered(
    layer: &impl Layer<CallerService, Service: OutgoingService>,
    inner: Arc<dyn Caller>,
) -> Arc<dyn Caller> {
    Arc::new(LayeredCaller::new(layer.layer(CallerService::new(inner.clone())), inner))
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
            reconnect: None,
            layers: Vec::new(),
            #[cfg(feature = "http")]
            http_layers: Vec::new(),
        }
    }
}

impl ClientBuilder {
    /// The bounds of the connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long each call waits for its answer, unless it says otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Which notifications mean more than the specification says: how calls are cancelled, and how
    /// their progress is told.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Makes another connection when one has ended, this way; one that is silent for 30 seconds, or for
    /// [`Limits::keep_alive`], is asked whether it is there. Calls that were under way fail with
    /// [`CallError::Interrupted`](crate::CallError::Interrupted), or are made again where they are declared idempotent; subscriptions
    /// are made anew. Over HTTP there is nothing to it: each call finds a connection.
    pub fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = Some(reconnect);
        self
    }

    /// A header for each HTTP request, or for the one that opens a WebSocket.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Calls by HTTP/2 and not otherwise: many calls share one connection. An `http://` endpoint is
    /// not asked, and one that speaks HTTP/1.1 only will not understand it. An `https://` endpoint
    /// picks it by itself where it can; with this, one that cannot is refused.
    pub fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// Whom to trust, and what to show, on `https://`, `wss://` and `tls://`. Without it, the
    /// authorities of this system are trusted.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: impl Into<transport::tls::TlsClient>) -> Self {
        self.tls = tls.into();
        self
    }

    /// Puts a `tower` layer around each call, as [`Client::layer`] does.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<CallerService, Service: OutgoingService> + Send + Sync + 'static,
    {
        self.layers.push(Arc::new(move |inner| layered(&layer, inner)));
        self
    }

    /// Puts a `tower` layer around each POST of an `http://` endpoint: a request of
    /// `http::Request<Bytes>`, answered by `http::Response<Bytes>`. It may change the path, the headers
    /// and the body. The layer added last is the outermost.
    #[cfg(feature = "http")]
    pub fn http_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<transport::http::HttpClientService, Service: transport::http::HttpRequestService>
            + Send
            + Sync
            + 'static,
    {
        self.http_layers.push(transport::http::client::boxed_layer(layer));
        self
    }

    /// Serves what the other side calls; without it, every call from there is answered -32601.
    pub fn handler(mut self, handler: impl Handler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Shows every message to a [`Tap`].
    pub fn tap(mut self, tap: impl Tap) -> Self {
        self.tap = Taps::new(tap);
        self
    }

    /// Connects.
    pub async fn connect(self, endpoint: &str) -> Result<Client, ConnectError> {
        let endpoint: Endpoint = endpoint.parse()?;
        self.connect_to(&endpoint).await
    }

    /// Connects to a parsed endpoint.
    pub async fn connect_to(mut self, endpoint: &Endpoint) -> Result<Client, ConnectError> {
        let layers = std::mem::take(&mut self.layers);
        let client = match self.reconnect.take() {
            // Every call over HTTP finds a connection, or makes one.
            Some(policy) if !matches!(endpoint, Endpoint::Http { .. }) => {
                let timeout = self.timeout;
                let lasting = Box::pin(ReconnectingCaller::connect(self, endpoint, policy)).await?;
                Client::lasting(lasting, timeout)
            }
            _ => self.connect_once(endpoint).await?,
        };
        Ok(client.in_layers(layers))
    }

    /// Asks whether the other side is there, where nothing else is said: nobody comes back to a
    /// connection that is not known to be lost.
    pub(crate) fn kept_alive(mut self) -> Self {
        self.limits.keep_alive.get_or_insert(KEEP_ALIVE);
        self
    }

    pub(crate) async fn connect_once(self, endpoint: &Endpoint) -> Result<Client, ConnectError> {
        let limit = self.limits.handshake_timeout;
        let hint = if endpoint.is_secure() { "; does the server speak TLS there?" } else { "" };
        let late =
            || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}{hint}"));
        // Boxed, or whatever connects would be as large as every handshake.
        let opening = Box::pin(self.open(endpoint));
        let connected = timeout(limit, opening).await.unwrap_or_else(|_| Err(late()));
        connected.map_err(|source| ConnectError::Failed { endpoint: endpoint.to_string(), source })
    }

    /// Calls over a transport that the application has opened.
    pub fn over(self, transport: impl Transport) -> Client {
        self.over_with(transport, Connection::new("custom"))
    }

    /// Calls over a transport, with the facts that handlers of this side see.
    pub fn over_with(mut self, transport: impl Transport, facts: Connection) -> Client {
        let layers = std::mem::take(&mut self.layers);
        self.attach(Wire::new(transport, facts)).in_layers(layers)
    }

    /// Calls a handler in this process; see [`Client::in_process`]. The handler is served within the
    /// limits and the dialect of this client.
    #[cfg(feature = "memory")]
    pub fn in_process(self, handler: impl Handler) -> Client {
        let (ours, theirs) = transport::memory::pair();
        let settings = Settings {
            dialect: self.dialect.clone().unless_plain(),
            ..Settings::new(self.limits.clone())
        };
        let config =
            ConnectionConfig { handler: Some(Arc::new(handler)), settings: Arc::new(settings) };
        let (_, served) = peer::connect(transport::memory::wire(theirs), config);
        tokio::spawn(served);
        self.over_with(ours, Connection::new("memory"))
    }
}

/// After what silence a client that reconnects asks whether the other side is there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("limits", &self.limits)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
