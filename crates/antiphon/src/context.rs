//! The context of a call, as its handler sees it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use antiphon_core::{Id, Params, RawJson, TraceContext};
use bytes::{Bytes, BytesMut};
use http::Extensions;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::call::{CallError, Invocation, Peer};
use crate::connection::Connection;
use crate::dialect::{Dialect, ProgressStyle};
use crate::identity::Identity;

/// The context of a call: its id, its connection, its peer, and the values that layers have added. Cheap
/// to clone.
// Values that layers add are not part of `CallState`, which is reused for the next call.
#[derive(Clone)]
pub struct Context(Arc<CallState>, Option<Arc<LayerValue>>);

/// A value that a layer has added to a call, and the values added before it.
struct LayerValue {
    value: Arc<dyn Any + Send + Sync>,
    /// The mark of the layer that added it; 0 for a value without one.
    mark: u64,
    before: Option<Arc<LayerValue>>,
}

/// Something that a call has opened and that must not be sent before the reply, such as the items of a
/// subscription.
pub(crate) trait AfterReply: Send + Sync {
    /// The reply is queued: the items may follow it.
    fn replied(&self);

    /// The reply is an error: the caller does not know the subscription, so it must be closed.
    fn refused(&self);

    /// The reply may have been replaced by an error: the caller may or may not know the subscription.
    fn truncated(&self);
}

/// The source of a call.
#[derive(Clone)]
pub(crate) enum Origin {
    /// A duplex connection. Its peer can be called back.
    Peer(Peer),
    /// One request of a transport that cannot call back. A [`WayBack`] may carry notifications.
    Request(Arc<RequestOrigin>),
}

/// The facts of one request that came without a duplex connection.
pub(crate) struct RequestOrigin {
    connection: Connection,
    way_back: Option<Box<dyn WayBack>>,
}

/// Carries notifications to the caller of one request before its response, such as an event stream.
pub(crate) trait WayBack: Send + Sync {
    /// The dialect of the caller. It defines how progress is reported.
    fn dialect(&self) -> Option<&Dialect>;

    /// Sends an encoded message to the caller of this request. Waits while the queue is full.
    fn send<'a>(
        &'a self,
        message: Bytes,
        request: &'a Connection,
    ) -> BoxFuture<'a, Result<(), CallError>>;
}

impl Origin {
    /// A request without a way back.
    #[inline]
    pub(crate) fn request(connection: Connection) -> Self {
        Self::Request(Arc::new(RequestOrigin { connection, way_back: None }))
    }

    /// A request whose caller receives notifications before the response.
    #[cfg(feature = "http")]
    pub(crate) fn with_way_back(connection: Connection, way_back: impl WayBack + 'static) -> Self {
        let way_back = Some(Box::new(way_back) as Box<dyn WayBack>);
        Self::Request(Arc::new(RequestOrigin { connection, way_back }))
    }

    pub(crate) fn peer(&self) -> Option<&Peer> {
        match self {
            Self::Peer(peer) => Some(peer),
            Self::Request(_) => None,
        }
    }

    /// Whether both are the same connection or request.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Peer(one), Self::Peer(other)) => one.is(other),
            (Self::Request(one), Self::Request(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        match self {
            Self::Peer(peer) => peer.connection(),
            Self::Request(request) => &request.connection,
        }
    }

    fn way_back(&self) -> Option<&dyn WayBack> {
        match self {
            Self::Peer(_) => None,
            Self::Request(request) => request.way_back.as_deref(),
        }
    }

    fn dialect(&self) -> Option<&Dialect> {
        match self {
            Self::Peer(peer) => peer.link().dialect(),
            Self::Request(_) => self.way_back()?.dialect(),
        }
    }

    /// Sends an encoded message to the caller.
    async fn send(&self, message: Bytes) -> Result<(), CallError> {
        match (self, self.way_back()) {
            (Self::Peer(peer), _) => peer.link().send_encoded(message).await,
            (_, Some(way_back)) => way_back.send(message, self.connection()).await,
            (_, None) => Err(CallError::CannotCallBack(self.connection().transport)),
        }
    }
}

/// The shared state of one call. It is reused for the next call if no clone of it remains.
struct CallState {
    id: Option<Id>,
    origin: Origin,
    /// Created on first use: most handlers finish before they could be cancelled.
    cancel: OnceLock<CancellationToken>,
    /// Waits for the reply of this call, and follows it.
    after_reply: OnceLock<Arc<dyn AfterReply>>,
    /// The params of the call, if they may hold a progress token.
    params: OnceLock<Params>,
}

impl Context {
    pub(crate) fn new(id: Option<Id>, origin: Origin) -> Self {
        let inner = CallState {
            id,
            origin,
            cancel: OnceLock::new(),
            after_reply: OnceLock::new(),
            params: OnceLock::new(),
        };
        Self(Arc::new(inner), None)
    }

    /// Creates the context of a call from the context of a finished one. This costs no allocation unless
    /// the handler of the finished call has kept a clone.
    #[inline(always)]
    pub(crate) fn reuse(spare: Option<Self>, id: Id, origin: &Origin) -> Self {
        let Some(mut spare) = spare else { return Self::new(Some(id), origin.clone()) };
        match Arc::get_mut(&mut spare.0) {
            Some(inner) => {
                inner.id = Some(id);
                if !inner.origin.is(origin) {
                    inner.origin = origin.clone();
                }
                inner.cancel.take();
                inner.after_reply.take();
                inner.params.take();
                spare
            }
            None => Self::new(Some(id), origin.clone()),
        }
    }

    /// The id of the Request; `None` for a Notification.
    pub fn id(&self) -> Option<&Id> {
        self.0.id.as_ref()
    }

    /// Returns the peer, to call it back. Fails over HTTP, which cannot carry calls to the client.
    pub fn peer(&self) -> Result<&Peer, CallError> {
        self.0.origin.peer().ok_or_else(|| CallError::CannotCallBack(self.connection().transport))
    }

    /// Notifies the caller. The notification is sent before the response of this call. Waits while the
    /// write queue is full.
    ///
    /// On a duplex connection it goes to the peer. Over HTTP it is an event of the response, where the
    /// `HttpPolicy` of the server allows an event stream, and fails with [`CallError::CannotCallBack`] where
    /// it does not.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        if let Origin::Peer(peer) = &self.0.origin {
            return peer.notify(method, params).await;
        }
        let params = Params::encode(&params).map_err(CallError::Encode)?;
        let mut message = BytesMut::new();
        Invocation::new(method, params).encode_head(&mut message);
        message.extend_from_slice(b"}");
        self.0.origin.send(message.freeze()).await
    }

    /// Returns a token that is cancelled with the call: by the caller, if the
    /// [`Dialect`](crate::Dialect) has a cancellation, by the request timeout, by the end of the
    /// connection, or by a shutdown.
    ///
    /// The future of the handler is dropped in any case. Use the token for tasks that the handler has
    /// spawned.
    pub fn cancellation(&self) -> &CancellationToken {
        self.0.cancel.get_or_init(CancellationToken::new)
    }

    /// Reports progress to the caller, if the caller has asked for it. It is sent before the response.
    /// Waits while the write queue is full.
    ///
    /// The [`Dialect`](crate::Dialect) defines the notification. Plain JSON-RPC has none, and HTTP
    /// carries it only in an event stream.
    pub async fn progress(&self, value: impl Serialize) -> Result<(), CallError> {
        let Some((style, token)) = self.progress_token() else { return Ok(()) };
        let value = RawJson::encode(&value);
        let value = value.map_err(|error| CallError::Encode(error.into()))?;
        self.0.origin.send(style.encode(&token, &value)).await
    }

    /// Whether the caller has asked for progress and can receive it.
    pub fn wants_progress(&self) -> bool {
        self.progress_token().is_some()
    }

    fn progress_token(&self) -> Option<(&ProgressStyle, RawJson)> {
        let style = self.0.origin.dialect()?.progress.as_ref()?;
        let token = style.token(self.id()?, self.0.params.get())?;
        Some((style, token))
    }

    /// Keeps the params of the call, for the progress token that they may hold.
    pub(crate) fn keep_params(&self, params: Option<&Params>) {
        if let Some(params) = params {
            let _ = self.0.params.set(params.clone());
        }
    }

    /// The connection, or the HTTP request, that carries the call.
    pub fn connection(&self) -> &Connection {
        self.0.origin.connection()
    }

    /// The values that the application has attached to the connection or the HTTP request.
    pub fn extensions(&self) -> &Extensions {
        &self.connection().extensions
    }

    /// Returns this context with a value added, for the inner layers and the handler. They read it with
    /// [`get`](Self::get). The value belongs to this call only.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.with_shared(Arc::new(value))
    }

    /// Like [`with`](Self::with), for a value that several calls share.
    #[must_use]
    pub fn with_shared<T: Send + Sync + 'static>(self, value: Arc<T>) -> Self {
        self.with_marked(value, 0)
    }

    /// Like [`with_shared`](Self::with_shared), with a mark of the layer that adds the value. So a layer
    /// can tell its own values from those of another instance of its type.
    pub(crate) fn with_marked<T: Send + Sync + 'static>(self, value: Arc<T>, mark: u64) -> Self {
        let Self(call, before) = self;
        Self(call, Some(Arc::new(LayerValue { value, mark, before })))
    }

    /// Returns the value of this type that a layer added last, or else the one that the application
    /// attached to the connection.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.get_marked().map(|(value, _)| value)
    }

    /// Like [`get`](Self::get), with the mark of the value; 0 where it has none.
    pub(crate) fn get_marked<T: Send + Sync + 'static>(&self) -> Option<(&T, u64)> {
        let mut next = self.1.as_deref();
        while let Some(added) = next {
            if let Some(value) = added.value.downcast_ref() {
                return Some((value, added.mark));
            }
            next = added.before.as_deref();
        }
        self.extensions().get().map(|value| (value, 0))
    }

    /// The identity of the caller, as set by [`Auth`](crate::layer::Auth) or by the application.
    pub fn identity(&self) -> Option<&Identity> {
        self.get()
    }

    /// The trace context of this call, if the layer [`Trace`](crate::layer::Trace) is installed.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.get()
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Registers what must follow the reply of this call.
    pub(crate) fn after_reply(&self, waiting: Arc<dyn AfterReply>) {
        let _ = self.0.after_reply.set(waiting);
    }

    /// Whether something must follow the reply.
    pub(crate) fn has_after_reply(&self) -> bool {
        self.0.after_reply.get().is_some()
    }

    /// The reply is an error.
    pub(crate) fn refused(&self) {
        if let Some(waiting) = self.0.after_reply.get() {
            waiting.refused();
        }
    }

    /// The reply may have been replaced by an error, because its batch is too large.
    pub(crate) fn truncated(&self) {
        if let Some(waiting) = self.0.after_reply.get() {
            waiting.truncated();
        }
    }

    /// The reply is queued.
    pub(crate) fn replied(&self) {
        if let Some(waiting) = self.0.after_reply.get() {
            waiting.replied();
        }
    }

    pub(crate) fn cancel(&self) {
        self.cancellation().cancel();
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.0.id)
            .field("connection", self.connection())
            .finish_non_exhaustive()
    }
}
