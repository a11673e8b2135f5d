//! The context of a call, as its handler sees it.

mod followers;
mod origin;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use antiphon_core::{Id, Params, RawJson, TraceContext};
use bytes::{Bytes, BytesMut};
use http::Extensions;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::call::{CallError, Invocation, Peer};
use crate::connection::Connection;
use crate::current_trace;
use crate::dialect::{CallStyle, ProgressStyle};
use crate::error::SpawnError;
use crate::identity::Identity;

pub(crate) use followers::AfterReply;
use followers::Followers;
pub(crate) use origin::Origin;
#[cfg(feature = "http")]
pub(crate) use origin::WayBack;

/// The context of a call: its id, its connection, its peer, and the values that layers have added. Cheap
/// to clone.
///
/// ```
/// use antiphon::{Context, Router};
///
/// let router = Router::new().method("whoami", |(): (), cx: Context| async move {
///     // Reaches the caller before the reply.
///     cx.notify("log", ("asked",)).await?;
///     // Calls the caller, on a connection where both sides can call.
///     let name: String = cx.peer()?.call("name", ()).await?;
///     Ok(format!("{name} over {}", cx.connection().transport))
/// });
/// ```
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

/// The shared state of one call. It is reused for the next call if no clone of it remains.
struct CallState {
    id: Option<Id>,
    origin: Origin,
    /// Created on first use: most handlers finish before they could be cancelled.
    cancel: OnceLock<CancellationToken>,
    /// Waits for the reply of this call, and follows it.
    after_reply: OnceLock<Followers>,
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

    /// Creates a context without a connection and without a caller, for unit tests of the methods of a
    /// contract. [`peer`](Self::peer), [`notify`](Self::notify) and [`spawn`](Self::spawn) fail.
    ///
    /// ```
    /// use antiphon::{Context, ErrorObject, Identity};
    ///
    /// async fn greet(cx: Context) -> Result<String, ErrorObject> {
    ///     let identity = cx.identity().ok_or_else(ErrorObject::unauthorized)?;
    ///     Ok(format!("hello {}", identity.name()))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// assert!(greet(Context::detached()).await.is_err());
    /// let ada = Context::detached().with(Identity::new("ada"));
    /// assert_eq!(greet(ada).await.unwrap(), "hello ada");
    /// assert!(Context::detached().peer().is_err());
    /// assert!(Context::detached().notify("log", ("text",)).await.is_err());
    /// assert!(Context::detached().spawn(async {}).is_err());
    /// # }
    /// ```
    pub fn detached() -> Self {
        Self::new(None, Origin::request(Connection::new("none")))
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
    /// On a duplex connection the notification goes to the peer. Over HTTP it becomes an event of the response
    /// if the `HttpPolicy` of the server returns `MessageDecision::Stream`. Otherwise this method fails with
    /// [`CallError::CannotCallBack`].
    ///
    /// # Cancel safety
    /// If the future is dropped while it waits, the notification is not sent. No part of it is sent.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        if let Origin::Peer(peer) = &self.0.origin {
            return peer.notify(method, params).await;
        }
        self.0.origin.send(self.encode_notification(method, &params)?).await
    }

    /// Sends an encoded message to the caller, before the response of this call. Waits while the write queue is
    /// full. The message goes where [`notify`](Self::notify) sends its notification.
    ///
    /// For protocols in which a request to the caller goes out on the event stream of one HTTP request, and its
    /// response comes in by another one. On a duplex connection, use [`peer`](Self::peer) instead: it chooses the
    /// ids of its calls, and an id that you choose can collide with them.
    ///
    /// The bytes are sent as they are. They must be one message without a line break.
    ///
    /// # Cancel safety
    /// If the future is dropped while it waits, the message is not sent. No part of it is sent.
    pub async fn send_message(&self, message: Bytes) -> Result<(), CallError> {
        self.0.origin.send(message).await
    }

    /// Notifies the peer right after the reply of this call.
    ///
    /// The notification follows the reply on the wire. In a batch, it follows the reply of the whole batch.
    /// The order on the wire is not the order of tasks in the caller: its handler for the notification may
    /// run before the code that awaits the call continues.
    ///
    /// The notifications after one reply count as part of it: together they have at most
    /// [`Limits::response_bytes`](crate::Limits::response_bytes), and beyond that this method fails with
    /// [`CallError::OverLimit`].
    ///
    /// - If the reply is an error, the notification is dropped, and this method still returns `Ok`: the handler
    ///   fails or panics, the call is cancelled or runs out of time, or the result is too large.
    /// - If one result of a batch is too large, no call of the batch sends its notifications.
    /// - Once a successful reply is queued, the notification is sent at once. This is the case in a task that outlives its
    ///   call, and in the handler of a subscription.
    /// - In the handler of a notification, which has no reply, this method is [`notify`](Self::notify).
    /// - Over HTTP this method fails with [`CallError::CannotCallBack`], because the response ends the
    ///   exchange.
    ///
    /// ```
    /// # use antiphon::{Context, Router};
    /// let router = Router::new().method("open", |(path,): (String,), cx: Context| async move {
    ///     // The caller receives the reply first, and then the notification.
    ///     cx.notify_after_reply("indexed", (path,)).await?;
    ///     Ok(true)
    /// });
    /// ```
    pub async fn notify_after_reply(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<(), CallError> {
        if self.id().is_none() {
            return self.notify(method, params).await;
        }
        let link = self.peer()?.link();
        let message = self.encode_notification(method, &params)?;
        match self.keep_until_reply(message, link.response_bytes())? {
            None => Ok(()),
            Some(message) => link.send_encoded(message).await,
        }
    }

    /// Runs a future as a task of the connection, outside the order of messages. Returns at once.
    ///
    /// Later requests and notifications wait until the handler of a notification returns. Run long work, and above all calls to the
    /// peer, in a task. Later messages may then be handled before the task continues.
    ///
    /// - It ends with the connection: the future is dropped at its next await. It does not end with the
    ///   call that spawned it, even if that call is cancelled.
    /// - A graceful shutdown waits for it at most `shutdown_timeout`, and then drops it. So a task that runs
    ///   until the connection ends delays a graceful shutdown.
    /// - The end of the peer's input on a byte stream waits for it in the same way, and on `stdio:` without a
    ///   limit. The end of a WebSocket or of an in-process connection drops it at once.
    /// - It continues the trace and the span of this call.
    /// - A panic is caught and logged. It has no effect on the connection.
    /// - A connection runs at most [`Limits::in_flight`](crate::Limits::in_flight) tasks, besides its requests.
    ///   Beyond that the future is dropped, and the error is [`SpawnError::Full`].
    ///
    /// HTTP has no connection that a task could belong to: the error is [`SpawnError::NoConnection`]. There
    /// notifications do not delay each other, so the handler can wait, or use `tokio::spawn`.
    ///
    /// # Panics
    /// Panics outside a Tokio runtime, for example on a thread that the handler has started.
    ///
    /// ```
    /// # use antiphon::{Context, Router};
    /// let router = Router::new().notification("opened", |(path,): (String,), cx: Context| async move {
    ///     let peer = cx.peer().cloned();
    ///     let spawned = cx.spawn(async move {
    ///         let Ok(peer) = peer else { return };
    ///         if let Ok(indent) = peer.call::<u8>("configuration", ("indent", path)).await {
    ///             println!("indent by {indent}");
    ///         }
    ///     });
    ///     if let Err(error) = spawned {
    ///         eprintln!("{error}");
    ///     }
    /// });
    /// ```
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), SpawnError> {
        let Origin::Peer(peer) = &self.0.origin else {
            return Err(SpawnError::NoConnection(self.connection().transport));
        };
        peer.link().clone().spawn(Box::pin(current_trace::carry(task)))
    }

    /// Returns a token that is cancelled when the call is cancelled: by the request timeout, the end of the
    /// connection, a shutdown, or the caller (if the [`Dialect`](crate::Dialect) has a cancellation).
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

    fn encode_notification(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Bytes, CallError> {
        let params = Params::encode(params).map_err(CallError::Encode)?;
        let style = self.0.origin.dialect().map_or(CallStyle::V2, |dialect| dialect.calls);
        let mut message = BytesMut::new();
        Invocation::new(method, params).encode_head(style, &mut message);
        style.end_notification(&mut message);
        Ok(message.freeze())
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.0.origin
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
