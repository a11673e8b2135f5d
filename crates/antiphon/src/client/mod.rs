//! The client: calls a server over the transport that the endpoint names.

mod builder;
mod error;
mod open;
mod reconnect;
mod request_reply;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antiphon_core::{Params, RawJson};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower_layer::Layer;

use crate::call::{Batch, Call, CallError, Caller, Invocation, NamePrefix, Peer, Stop, Subscribe};
use crate::context::Context;
use crate::endpoint::{Endpoint, EndpointError};
#[cfg(feature = "memory")]
use crate::service::Handler;
use crate::service::{CallerService, OutgoingService};
use crate::subscription::Topic;
use crate::transport::Transport;

pub use builder::ClientBuilder;
use builder::{CallerLayer, layered};
pub use error::ConnectError;
use reconnect::ReconnectingCaller;
pub use reconnect::{ConnectionState, Reconnect};

/// A client of a JSON-RPC server, over any transport. Cheap to clone. The connection closes when the last
/// clone is dropped: messages that are queued are sent, and running handlers finish within
/// [`Limits::shutdown_timeout`](crate::Limits::shutdown_timeout).
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
    connection: OwnedConnection,
    /// Precedes the names of all methods and topics.
    prefix: NamePrefix,
}

/// The connection that a client owns.
#[derive(Clone)]
pub(crate) enum OwnedConnection {
    /// None: HTTP, a request-reply transport, or a caller that the application has passed.
    None,
    /// None: the connection of this peer, which the client does not keep open and cannot close.
    OfPeer(Peer),
    /// One connection.
    Single(Arc<OpenConnection>),
    /// A connection that is opened again when it has ended.
    Reconnecting(Arc<ReconnectingCaller>),
}

/// An open connection, and the task that drives it. Closes the connection on drop.
pub(crate) struct OpenConnection {
    peer: Peer,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.peer.stop(Stop::Gracefully);
    }
}

impl Client {
    /// Connects with default settings to an [`Endpoint`], or to the text of one. `http://` and `https://`
    /// connect at the first call.
    ///
    /// # Errors
    /// See [`ClientBuilder::connect`].
    pub async fn connect(
        endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
    ) -> Result<Self, ConnectError> {
        Self::builder().connect(endpoint).await
    }

    /// Returns a builder with default settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Creates a client over a transport that the application has opened. See [`ClientBuilder::over`].
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn over(transport: impl Transport) -> Self {
        Self::builder().over(transport)
    }

    /// Creates a client of a handler in this process, over a connection in memory. The handler can call
    /// back.
    ///
    /// ```
    /// use antiphon::{Client, Context, Router};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let router = Router::new().method("double", |(n,): (i64,), _cx: Context| async move {
    ///     Ok(n * 2)
    /// });
    /// let client = Client::in_process(router);
    /// assert_eq!(client.call::<i64>("double", [21]).await?, 42);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    #[cfg(feature = "memory")]
    pub fn in_process(handler: impl Handler) -> Self {
        Self::builder().in_process(handler)
    }

    /// Calls a method. The call is sent when it is awaited, and abandoned when it is dropped.
    ///
    /// Params are a tuple, slice or `Vec` (by position), a struct or map (by name), or `()`.
    pub fn call<R>(&self, method: &str, params: impl Serialize) -> Call<R> {
        Call::new(self.caller.clone(), &self.prefix.name(method), &params, self.timeout)
    }

    /// Sends a notification. Returns when the message is queued, or, over HTTP, when it was accepted. While
    /// the write queue is full or the client reconnects, it waits without a timeout.
    ///
    /// # Cancel safety
    /// On a connection, a notification whose future is dropped was not sent. Over HTTP it may have been sent.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        let params = Params::encode(&params).map_err(CallError::Encode)?;
        self.caller.post(Invocation::new(&self.prefix.name(method), params)).await
    }

    /// Subscribes to a topic. The subscription is requested when it is awaited. HTTP has no
    /// subscriptions.
    pub fn subscribe<T>(&self, topic: impl Into<Topic>, params: impl Serialize) -> Subscribe<T> {
        let topic = self.prefix.topic(topic.into());
        Subscribe::new(self.caller.clone(), topic, &params, self.timeout)
    }

    /// Starts a batch.
    pub fn batch(&self) -> Batch {
        Batch::new(self.caller.clone(), self.timeout, self.prefix.clone())
    }

    /// Forwards an incoming call or notification to the server of this client. Params and result are
    /// passed on as bytes and not parsed. The timeout of this client does not apply.
    ///
    /// # Cancel safety
    /// Like a [`Call`]: dropping the future abandons the call, and the server may have executed it.
    pub async fn forward(&self, call: Invocation, cx: &Context) -> Result<RawJson, CallError> {
        let method = self.prefix.method(call.method);
        let call = Invocation { id: None, method, ..call };
        match cx.id() {
            Some(_) => self.caller.send(call).await,
            None => self.caller.post(call).await.map(|()| RawJson::NULL),
        }
    }

    /// Returns a client of the same connection that adds a prefix to every name. Use it to call a router that
    /// the server added with [`Router::nest`](crate::Router::nest). The prefix applies to calls, notifications,
    /// batches and subscriptions. A typed client of a nested contract is
    /// `MathClient::new(client.nested("math."))`, and in a handler of the other side
    /// `MathClient::new(Client::from(cx.peer()?).nested("math."))`.
    ///
    /// ```
    /// use antiphon::{Client, Context, Router};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let math = Router::new().method("double", |(n,): (i64,), _cx: Context| async move {
    ///     Ok(n * 2)
    /// });
    /// let client = Client::in_process(Router::new().nest("math.", math));
    /// assert_eq!(client.nested("math.").call::<i64>("double", [21]).await?, 42);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn nested(&self, prefix: &str) -> Self {
        Self { prefix: self.prefix.nested(prefix), ..self.clone() }
    }

    /// Returns a client of the same connection, with a `tower` layer around each call, batch entry,
    /// notification and subscription. The layer added last is the outermost.
    ///
    /// The entries of a batch pass the layers concurrently. Entries that reach the connection in the
    /// same poll of the batch are sent as one batch, in their order. An entry that a layer delays is
    /// sent later, and an entry that a layer rejects is not sent.
    ///
    /// The call that ends a subscription passes the same layers as the call that opened it, also when the
    /// [`Subscription`](crate::Subscription) is dropped. If no layer passes it on, it is sent without the
    /// layers: otherwise the server would send items for as long as the connection is open.
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
    pub fn layer(self, layer: impl Layer<CallerService, Service: OutgoingService>) -> Self {
        Self { caller: layered(&layer, self.caller), ..self }
    }

    /// The [`Caller`] that this client uses, with its layers.
    pub fn caller(&self) -> &Arc<dyn Caller> {
        &self.caller
    }

    /// The prefix of its names.
    #[cfg(feature = "macros")]
    pub(crate) fn prefix(&self) -> &NamePrefix {
        &self.prefix
    }

    pub(crate) fn new(
        caller: Arc<dyn Caller>,
        timeout: Option<Duration>,
        connection: OwnedConnection,
    ) -> Self {
        Self { caller, timeout, connection, prefix: NamePrefix::default() }
    }

    /// The server as a peer, without the layers of this client. For a client of a [`Peer`], this peer. `None`
    /// over HTTP, for a client of another [`Caller`], and while there is no connection.
    pub fn peer(&self) -> Option<Peer> {
        match &self.connection {
            OwnedConnection::None => None,
            OwnedConnection::OfPeer(peer) => Some(peer.clone()),
            OwnedConnection::Single(open) => Some(open.peer.clone()),
            OwnedConnection::Reconnecting(caller) => caller.peer(),
        }
    }

    /// The states of the connection of a reconnecting client; `None` for any other client.
    pub fn states(&self) -> Option<watch::Receiver<ConnectionState>> {
        match &self.connection {
            OwnedConnection::Reconnecting(caller) => Some(caller.states()),
            OwnedConnection::None | OwnedConnection::OfPeer(_) | OwnedConnection::Single(_) => None,
        }
    }

    fn in_layers(self, layers: Vec<CallerLayer>) -> Self {
        let caller = layers.into_iter().fold(self.caller, |inner, layer| layer(inner));
        Self { caller, ..self }
    }

    /// Sends the queued messages, closes the connection, and waits until it is closed. The child process
    /// of an `exec:` endpoint has exited by then.
    ///
    /// The connection closes for every clone of this client. Calls that wait for a response fail. Over HTTP,
    /// and for a client of a [`Peer`] or another [`Caller`], this does nothing, because such a client owns no
    /// connection.
    ///
    /// # Cancel safety
    /// Once the future was polled, the connection closes even if the future is dropped.
    pub async fn close(self) {
        match &self.connection {
            OwnedConnection::None | OwnedConnection::OfPeer(_) => {}
            OwnedConnection::Single(open) => open.close().await,
            OwnedConnection::Reconnecting(caller) => caller.close().await,
        }
    }
}

impl OpenConnection {
    async fn close(&self) {
        self.peer.stop(Stop::Gracefully);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        match task {
            Some(task) => drop(task.await),
            None => drop(self.peer.closed().await),
        }
    }
}

/// Clones the handle to the same connection.
impl From<&Client> for Client {
    fn from(client: &Client) -> Self {
        client.clone()
    }
}

/// A client that calls the peer of a connection. It does not keep the connection open.
impl From<Peer> for Client {
    fn from(peer: Peer) -> Self {
        Self::new(Arc::new(peer.clone()), None, OwnedConnection::OfPeer(peer))
    }
}

/// Like a client of the peer by value.
impl From<&Peer> for Client {
    fn from(peer: &Peer) -> Self {
        Self::from(peer.clone())
    }
}

/// A client of any caller.
impl From<Arc<dyn Caller>> for Client {
    fn from(caller: Arc<dyn Caller>) -> Self {
        Self::new(caller, None, OwnedConnection::None)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("peer", &self.peer()).finish_non_exhaustive()
    }
}
