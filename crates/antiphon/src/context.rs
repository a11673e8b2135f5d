//! What a handler knows about the call it serves.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use antiphon_core::{ErrorObject, Id, Params, ParamsError, RawJson};
use bytes::Bytes;
use http::{Extensions, HeaderMap};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::call::CallError;
use crate::dialect::ProgressStyle;
use crate::layer::Identity;
use crate::layer::session::Session;
use crate::peer::Peer;
use crate::subscription::Channel;

/// One call as its handler sees it. Cheap to clone.
///
/// What layers have added is no part of what is shared and used again for the next call: it goes
/// down with the call, and ends with it.
#[derive(Clone)]
pub struct Context(Arc<Inner>, Option<Arc<Added>>);

/// What a layer has added to a call, and what was added before.
struct Added {
    value: Arc<dyn Any + Send + Sync>,
    /// Which `Auth` has added it; 0 for everybody else.
    by: u64,
    before: Option<Arc<Added>>,
}

/// Where a call came from.
#[derive(Clone)]
pub(crate) enum Origin {
    /// A connection, which has a way back.
    Peer(Peer),
    /// An HTTP request, which has none.
    Request(Arc<Connection>),
}

impl Origin {
    pub(crate) fn peer(&self) -> Option<&Peer> {
        match self {
            Self::Peer(peer) => Some(peer),
            Self::Request(_) => None,
        }
    }

    /// Whether it is this one.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Peer(one), Self::Peer(other)) => one.is(other),
            (Self::Request(one), Self::Request(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        match self {
            Self::Peer(peer) => peer.facts(),
            Self::Request(connection) => connection,
        }
    }
}

struct Inner {
    id: Option<Id>,
    origin: Origin,
    /// Made when somebody asks: most handlers end before anybody could cancel them.
    cancel: OnceLock<CancellationToken>,
    /// The subscription that this call has opened: its items wait for the reply.
    opened: OnceLock<Arc<Channel>>,
    /// What the call was made with, where that may ask for progress.
    asked: OnceLock<Params>,
}

impl Context {
    pub(crate) fn new(id: Option<Id>, origin: Origin) -> Self {
        let inner = Inner {
            id,
            origin,
            cancel: OnceLock::new(),
            opened: OnceLock::new(),
            asked: OnceLock::new(),
        };
        Self(Arc::new(inner), None)
    }

    /// The same for a call whose handler has kept nothing of the last one's: it costs no allocation.
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
                inner.opened.take();
                inner.asked.take();
                spare
            }
            None => Self::new(Some(id), origin.clone()),
        }
    }

    /// The id of the Request; `None` for a Notification.
    pub fn id(&self) -> Option<&Id> {
        self.0.id.as_ref()
    }

    /// The other side, to call back. Fails over HTTP, which has no way back.
    pub fn peer(&self) -> Result<&Peer, CallError> {
        self.0.origin.peer().ok_or_else(|| CallError::NoWayBack(self.connection().transport))
    }

    /// Ends when the call is cancelled: by the caller, where the [`Dialect`](crate::Dialect) has a way to,
    /// by its timeout, by the other side going away, by shutdown.
    ///
    /// The handler's future is dropped then anyway; the token is for what it has set going.
    pub fn cancellation(&self) -> &CancellationToken {
        self.0.cancel.get_or_init(CancellationToken::new)
    }

    /// Tells the caller how far the call has come, if the caller has asked to be told; it goes out
    /// before the answer. Waits while the write queue is full.
    ///
    /// What it looks like on the wire is the [`Dialect`](crate::Dialect)'s; plain JSON-RPC has none, and
    /// HTTP no way back.
    pub async fn progress(&self, value: impl Serialize) -> Result<(), CallError> {
        let Some((peer, style, token)) = self.progress_token() else { return Ok(()) };
        let value = RawJson::encode(&value);
        let value = value.map_err(|error| CallError::Encode(ParamsError::Serialize(error)))?;
        peer.send_own(style.encode(&token, &value)).await
    }

    /// Whether the caller has asked to be told how far the call has come.
    pub fn wants_progress(&self) -> bool {
        self.progress_token().is_some()
    }

    fn progress_token(&self) -> Option<(&Peer, &ProgressStyle, RawJson)> {
        let peer = self.0.origin.peer()?;
        let style = peer.progress_style()?;
        let token = style.token(self.id()?, self.0.asked.get())?;
        Some((peer, style, token))
    }

    /// Whether the params of a call may ask for progress on this connection.
    #[inline]
    pub(crate) fn is_told_by_params(&self) -> bool {
        let style = self.0.origin.peer().and_then(Peer::progress_style);
        style.is_some_and(|style| !style.is_by_id())
    }

    /// Keeps what the call was made with.
    pub(crate) fn heed(&self, params: Option<&Params>) {
        if let Some(params) = params {
            let _ = self.0.asked.set(params.clone());
        }
    }

    /// The connection that the call came by.
    pub fn connection(&self) -> &Connection {
        self.0.origin.connection()
    }

    /// What the application has attached to the connection or the HTTP request.
    pub fn extensions(&self) -> &Extensions {
        &self.connection().extensions
    }

    /// The same call with something added, for the layers and the handler further in. They find it
    /// by [`get`](Self::get).
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.with_shared(Arc::new(value))
    }

    /// The same for what many calls share.
    #[must_use]
    pub fn with_shared<T: Send + Sync + 'static>(self, value: Arc<T>) -> Self {
        self.with_by(value, 0)
    }

    /// The same, added by this `Auth`.
    pub(crate) fn with_by<T: Send + Sync + 'static>(self, value: Arc<T>, by: u64) -> Self {
        let Self(call, before) = self;
        Self(call, Some(Arc::new(Added { value, by, before })))
    }

    /// What a layer has added to this call, the last of this type; or else what the application has
    /// attached to the connection.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.get_by().map(|(value, _)| value)
    }

    /// The same, and which `Auth` has added it; 0 for everybody else.
    pub(crate) fn get_by<T: Send + Sync + 'static>(&self) -> Option<(&T, u64)> {
        let mut next = self.1.as_deref();
        while let Some(added) = next {
            if let Some(value) = added.value.downcast_ref() {
                return Some((value, added.by));
            }
            next = added.before.as_deref();
        }
        self.extensions().get().map(|value| (value, 0))
    }

    /// Who calls, as [`Auth`](crate::layer::Auth) or the application has found out.
    pub fn identity(&self) -> Option<&Identity> {
        self.get()
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Lets the items of this subscription go once the reply is on its way.
    pub(crate) fn after_answer(&self, opened: Arc<Channel>) {
        let _ = self.0.opened.set(opened);
    }

    /// Whether something waits for the reply.
    pub(crate) fn has_opened(&self) -> bool {
        self.0.opened.get().is_some()
    }

    /// The reply is an error after all: what the call has opened is over, since nobody learns of it.
    pub(crate) fn refused(&self) {
        if let Some(opened) = self.0.opened.get() {
            opened.end();
        }
    }

    /// The reply may have been cut: what the call has opened ends with an error, for who knows its id.
    pub(crate) fn cut(&self) {
        if let Some(opened) = self.0.opened.get() {
            opened.fail(ErrorObject::server_busy("the answers of its batch are too large"));
        }
    }

    /// The reply is on its way.
    pub(crate) fn answered(&self) {
        if let Some(opened) = self.0.opened.get() {
            opened.release();
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

/// Completes the facts of a connection before anything is served on it.
pub(crate) type OnConnect = Arc<dyn Fn(&mut Connection) + Send + Sync>;

/// The facts of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The transport's name as endpoints spell it: `http`, `https`, `ws`, `wss`, `tcp`, `tls`, `unix`,
    /// `stdio`, `exec`, `memory`.
    pub transport: &'static str,
    /// Who is on the other side, where addresses exist.
    pub remote: Option<SocketAddr>,
    /// What the application has attached.
    pub extensions: Extensions,
    pub(crate) headers: Headers,
    /// Who is on the other side, where it said so after connecting; made by who asks.
    pub(crate) session: OnceLock<Arc<Session>>,
}

impl Connection {
    /// A connection of which only the transport is known.
    pub fn new(transport: &'static str) -> Self {
        let headers = Headers::from(HeaderMap::new());
        let session = OnceLock::new();
        Self { transport, remote: None, extensions: Extensions::new(), headers, session }
    }

    /// The headers of the HTTP request, or of the one that became a WebSocket; empty elsewhere.
    pub fn headers(&self) -> &HeaderMap {
        self.headers.map()
    }

    /// Names the other side.
    #[must_use]
    pub fn from(mut self, remote: Option<SocketAddr>) -> Self {
        self.remote = remote;
        self
    }
}

/// The headers of a request.
#[derive(Clone)]
pub(crate) enum Headers {
    Read(HeaderMap),
    /// As they were written, until somebody asks.
    Unread {
        map: OnceLock<HeaderMap>,
        text: Bytes,
        read: fn(&[u8]) -> HeaderMap,
    },
}

impl Headers {
    /// From the text of a request's head, which that function reads.
    #[cfg(feature = "http")]
    pub(crate) fn unread(text: Bytes, read: fn(&[u8]) -> HeaderMap) -> Self {
        Self::Unread { map: OnceLock::new(), text, read }
    }

    fn map(&self) -> &HeaderMap {
        match self {
            Self::Read(map) => map,
            Self::Unread { map, text, read } => map.get_or_init(|| read(text)),
        }
    }
}

impl From<HeaderMap> for Headers {
    fn from(map: HeaderMap) -> Self {
        Self::Read(map)
    }
}

impl fmt::Debug for Headers {
    /// Names only: the values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let map = match self {
            Self::Read(map) => Some(map),
            Self::Unread { map, .. } => map.get(),
        };
        f.debug_list().entries(map.into_iter().flat_map(HeaderMap::keys)).finish()
    }
}
