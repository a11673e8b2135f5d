//! Calling, over whatever the endpoint names.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antiphon_core::{ErrorObject, Limits, Params, RawJson};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower_layer::Layer;

use crate::call::{Batch, Call, CallError, Caller, Invocation};
use crate::context::Context;
use crate::dialect::Dialect;
use crate::endpoint::{Endpoint, EndpointError};
use crate::handler::Handler;
use crate::layer::{LayeredCaller, Places, Placing};
use crate::peer::{self, Direction, Peer, Side, Stop, Tap, Wire};
use crate::reconnect::{ConnectionState, Lasting, Reconnect};
use crate::subscription::{Subscribe, Topic};
use crate::transport::{self, Transport};

/// A connection to a JSON-RPC server of any kind. Cheap to clone; the last clone closes it.
///
/// ```
/// use antiphon::{Client, Context, Router, Server};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let router = Router::new().method("subtract", |(a, b): (i64, i64), _cx: Context| async move {
/// #     Ok(a - b)
/// # });
/// # tokio::spawn(Server::bind("memory:client-doc").await?.serve(router));
/// let client = Client::connect("memory:client-doc").await?;
/// let difference: i64 = client.call("subtract", (42, 23)).await?;
/// assert_eq!(difference, 19);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    caller: Arc<dyn Caller>,
    timeout: Option<Duration>,
    line: Line,
}

/// What is behind a client.
#[derive(Clone)]
pub(crate) enum Line {
    /// Nothing that stays: HTTP.
    None,
    /// One connection.
    One(Arc<Open>),
    /// One connection after the other.
    Lasting(Arc<Lasting>),
}

/// An open connection.
pub(crate) struct Open {
    peer: Peer,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.peer.stop(Stop::Gracefully);
    }
}

impl Client {
    /// Connects with default settings.
    pub async fn connect(endpoint: &str) -> Result<Self, ConnectError> {
        Self::builder().connect(endpoint).await
    }

    /// Settings first.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Calls a method. Sent when awaited; dropping it abandons the call.
    ///
    /// Params are a tuple, slice or `Vec` (by position), a struct or map (by name), or `()`.
    pub fn call<R>(&self, method: &str, params: impl Serialize) -> Call<R> {
        Call::new(self.caller.clone(), method, &params, self.timeout)
    }

    /// Notifies; done when the message is on its way.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        let params = Params::encode(&params).map_err(CallError::Encode)?;
        self.caller.post(Invocation::new(method, params)).await
    }

    /// Subscribes to a topic; asked for when awaited. Over HTTP there are none.
    pub fn subscribe<T>(&self, topic: impl Into<Topic>, params: impl Serialize) -> Subscribe<T> {
        Subscribe::new(self.caller.clone(), topic.into(), &params, self.timeout)
    }

    /// Starts a batch.
    pub fn batch(&self) -> Batch {
        Batch::new(self.caller.clone(), self.timeout)
    }

    /// Passes on what came in: a call as a call, a notification as one. The bytes of params and
    /// result are not looked at.
    pub async fn forward(&self, call: Invocation, cx: &Context) -> Result<RawJson, CallError> {
        let call = Invocation { id: None, ..call };
        match cx.id() {
            Some(_) => self.caller.send(call).await,
            None => self.caller.post(call).await.map(|()| RawJson::NULL),
        }
    }

    /// The same connection with a `tower` layer around each call, entry of a batch, notification and
    /// subscription of this handle and its clones. The layer added last is the outermost.
    ///
    /// A batch whose entries pass is sent as one; an entry that a layer refuses is not in it.
    ///
    /// ```
    /// use antiphon::layer::Concurrency;
    /// # use antiphon::Client;
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::connect("ws://127.0.0.1:8650").await?;
    /// let client = client.layer(Concurrency::new(8));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn layer(self, layer: impl Layer<Placing, Service: Places>) -> Self {
        Self { caller: layered(&layer, self.caller), ..self }
    }

    /// What is called underneath.
    pub fn caller(&self) -> &Arc<dyn Caller> {
        &self.caller
    }

    pub(crate) fn new(caller: Arc<dyn Caller>, timeout: Option<Duration>, line: Line) -> Self {
        Self { caller, timeout, line }
    }

    /// The other side as a peer, without the layers of this client; `None` over HTTP, and while there is
    /// no connection.
    pub fn peer(&self) -> Option<Peer> {
        match &self.line {
            Line::None => None,
            Line::One(open) => Some(open.peer.clone()),
            Line::Lasting(lasting) => lasting.peer(),
        }
    }

    /// What becomes of the connection of a client that reconnects; `None` for any other.
    pub fn states(&self) -> Option<watch::Receiver<ConnectionState>> {
        match &self.line {
            Line::Lasting(lasting) => Some(lasting.states()),
            Line::None | Line::One(_) => None,
        }
    }

    fn in_layers(self, layers: Vec<Layering>) -> Self {
        let caller = layers.into_iter().fold(self.caller, |inner, layer| layer(inner));
        Self { caller, ..self }
    }

    /// Sends what is queued, closes, and waits until that is done; a child process has left by then.
    pub async fn close(self) {
        match &self.line {
            Line::None => {}
            Line::One(open) => open.close().await,
            Line::Lasting(lasting) => lasting.close().await,
        }
    }
}

impl Open {
    async fn close(&self) {
        self.peer.stop(Stop::Gracefully);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        match task {
            Some(task) => drop(task.await),
            None => drop(self.peer.closed().await),
        }
    }
}

/// Another handle to the same connection.
impl From<&Client> for Client {
    fn from(client: &Client) -> Self {
        client.clone()
    }
}

/// Calls the other side of a connection. It does not keep the connection open.
impl From<&Peer> for Client {
    fn from(peer: &Peer) -> Self {
        Self::from(Arc::new(peer.clone()) as Arc<dyn Caller>)
    }
}

/// Calls anything that can be called.
impl From<Arc<dyn Caller>> for Client {
    fn from(caller: Arc<dyn Caller>) -> Self {
        Self { caller, timeout: None, line: Line::None }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("peer", &self.peer()).finish_non_exhaustive()
    }
}

/// How to connect.
#[derive(Clone)]
#[must_use = "`connect` does it"]
pub struct ClientBuilder {
    limits: Limits,
    timeout: Option<Duration>,
    headers: HeaderMap,
    http2: bool,
    #[cfg(feature = "tls")]
    tls: transport::tls::TlsClient,
    handler: Option<Arc<dyn Handler>>,
    tap: Option<Tap>,
    dialect: Dialect,
    reconnect: Option<Reconnect>,
    layers: Vec<Layering>,
    #[cfg(feature = "http")]
    http_layers: Vec<transport::http::client::Layering>,
}

/// A layer that was put around what is called.
type Layering = Arc<dyn Fn(Arc<dyn Caller>) -> Arc<dyn Caller> + Send + Sync>;

fn layered(
    layer: &impl Layer<Placing, Service: Places>,
    inner: Arc<dyn Caller>,
) -> Arc<dyn Caller> {
    Arc::new(LayeredCaller::new(layer.layer(Placing::new(inner.clone())), inner))
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
            tap: None,
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
    /// [`CallError::Interrupted`], or are made again where they are declared idempotent; subscriptions
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
        L: Layer<Placing, Service: Places> + Send + Sync + 'static,
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
        L: Layer<transport::http::Posting, Service: transport::http::Posts> + Send + Sync + 'static,
    {
        self.http_layers.push(transport::http::client::layering(layer));
        self
    }

    /// Serves what the other side calls; without it, every call from there is answered -32601.
    pub fn handler(mut self, handler: impl Handler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Shows every message as it is on the wire.
    pub fn inspect(mut self, see: impl Fn(Direction, &[u8]) + Send + Sync + 'static) -> Self {
        self.tap = Some(Arc::new(see));
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
                let lasting = Box::pin(Lasting::connect(self, endpoint, policy)).await?;
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

    /// Makes a client of a transport of one's own.
    pub fn over(mut self, transport: impl Transport) -> Client {
        let facts = crate::context::Connection::new("custom");
        let meter = Arc::default();
        let layers = std::mem::take(&mut self.layers);
        let wire = Wire { transport, facts, meter, at_end: peer::AtEnd::Cancel };
        self.attach(wire).in_layers(layers)
    }

    async fn open(self, endpoint: &Endpoint) -> io::Result<Client> {
        match endpoint {
            #[cfg(not(feature = "tls"))]
            secure if secure.is_secure() => Err(without_feature(secure)),
            #[cfg(feature = "http")]
            Endpoint::Http { authority, path, secure } => {
                let settings = transport::http::client::Settings {
                    headers: &self.headers,
                    limits: &self.limits,
                    http2: self.http2,
                    #[cfg(feature = "tls")]
                    tls: secure.then_some(&self.tls),
                    layers: &self.http_layers,
                };
                let caller =
                    transport::http::client::HttpCaller::new(authority, path, &settings, self.tap);
                let caller = Arc::new(caller?);
                Ok(Client::new(caller, self.timeout, Line::None))
            }
            #[cfg(all(feature = "ws", feature = "tls"))]
            Endpoint::Ws { authority, path, secure: true } => {
                let (headers, limits) = (&self.headers, &self.limits);
                let connecting =
                    transport::ws::connect_tls(authority, path, headers, limits, &self.tls);
                let wire = connecting.await?;
                Ok(self.attach(wire))
            }
            #[cfg(feature = "ws")]
            Endpoint::Ws { authority, path, .. } => {
                let wire =
                    transport::ws::connect(authority, path, &self.headers, &self.limits).await?;
                Ok(self.attach(wire))
            }
            #[cfg(feature = "tls")]
            Endpoint::Tcp { authority, framing, secure: true } => {
                let connector = transport::tls::Connector::new(&self.tls, &authority.host, &[])?;
                let stream = transport::tcp::connect(&authority.to_string(), &self.limits).await?;
                let stream = connector.connect(stream).await?;
                let framing = Some(framing.unwrap_or(LINE));
                let wire = transport::tcp::tls_wire(stream, framing, &self.limits);
                Ok(self.attach(wire))
            }
            #[cfg(feature = "tcp")]
            Endpoint::Tcp { authority, framing, .. } => {
                let stream = transport::tcp::connect(&authority.to_string(), &self.limits).await?;
                let wire =
                    transport::tcp::wire(stream, Some(framing.unwrap_or(LINE)), &self.limits);
                Ok(self.attach(wire))
            }
            #[cfg(all(feature = "unix", unix))]
            Endpoint::Unix { path, framing } => {
                let stream = tokio::net::UnixStream::connect(path).await?;
                let wire =
                    transport::unix::wire(stream, Some(framing.unwrap_or(LINE)), &self.limits);
                Ok(self.attach(wire))
            }
            #[cfg(feature = "child")]
            Endpoint::Exec { command, framing } => {
                let framing = framing.unwrap_or(LINE);
                let (child, wire) = transport::child::spawn(command, framing, &self.limits)?;
                Ok(self.attach_then(wire, transport::child::reap(child)))
            }
            #[cfg(feature = "memory")]
            Endpoint::Memory { name } => {
                let absent =
                    || io::Error::new(io::ErrorKind::NotFound, "nobody listens under this name");
                let transport = transport::memory::connect(name).await.ok_or_else(absent)?;
                Ok(self.attach(transport::memory::wire(transport)))
            }
            Endpoint::Stdio { .. } => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "stdio: can only be listened on; use exec:command to call a process",
            )),
            #[allow(unreachable_patterns, reason = "with every feature there is nothing left")]
            _ => Err(without_feature(endpoint)),
        }
    }

    fn attach(self, wire: Wire<impl Transport>) -> Client {
        self.attach_then(wire, std::future::ready(()))
    }

    /// Drives the connection in a task, and this after it.
    fn attach_then(
        self,
        wire: Wire<impl Transport>,
        after: impl Future<Output = ()> + Send + 'static,
    ) -> Client {
        let side = Side {
            handler: self.handler,
            rules: self.limits.rules(),
            limits: Arc::new(self.limits),
            tap: self.tap,
            dialect: self.dialect.shared(),
        };
        let (peer, connection) = peer::connect(wire, side);
        let task = tokio::spawn(async move {
            connection.await;
            after.await;
        });
        let open = Open { peer: peer.clone(), task: Mutex::new(Some(task)) };
        Client::new(Arc::new(peer), self.timeout, Line::One(Arc::new(open)))
    }
}

/// After what silence a client that reconnects asks whether the other side is there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

const LINE: antiphon_core::framing::Framing = antiphon_core::framing::Framing::Line;

pub(crate) fn without_feature(endpoint: &Endpoint) -> io::Error {
    let text = endpoint.to_string();
    let scheme = text.split([':', '+']).next().unwrap_or_default();
    let feature = match scheme {
        "exec" => "child",
        _ if endpoint.is_secure() && !cfg!(feature = "tls") => "tls",
        "https" => "http",
        "wss" => "ws",
        other => other,
    };
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!("this build has no {scheme}; turn on the feature `{feature}` of antiphon"),
    )
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("limits", &self.limits)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address makes no sense.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Nobody answered there, or not as expected.
    #[error("cannot connect to {endpoint}")]
    Failed {
        /// Where to.
        endpoint: String,
        /// What happened.
        source: io::Error,
    },
}

impl ConnectError {
    /// With what happened.
    pub(crate) fn in_full(&self) -> String {
        match self {
            Self::Failed { source, .. } => format!("{self}: {source}"),
            Self::Endpoint(_) => self.to_string(),
        }
    }
}

impl From<ConnectError> for ErrorObject {
    fn from(error: ConnectError) -> Self {
        tracing::warn!(%error, "a handler could not connect");
        Self::internal_error()
    }
}
