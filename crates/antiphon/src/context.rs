//! What a handler knows about the call it serves.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use antiphon_core::Id;
use bytes::Bytes;
use http::{Extensions, HeaderMap};
use tokio_util::sync::CancellationToken;

use crate::call::CallError;
use crate::peer::Peer;

/// One call as its handler sees it. Cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

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

    fn connection(&self) -> &Connection {
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
}

impl Context {
    pub(crate) fn new(id: Option<Id>, origin: Origin) -> Self {
        Self(Arc::new(Inner { id, origin, cancel: OnceLock::new() }))
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

    /// Ends when the call is cancelled: by its timeout, by the other side going away, by shutdown.
    ///
    /// The handler's future is dropped then anyway; the token is for what it has set going.
    pub fn cancellation(&self) -> &CancellationToken {
        self.0.cancel.get_or_init(CancellationToken::new)
    }

    /// The connection that the call came by.
    pub fn connection(&self) -> &Connection {
        self.0.origin.connection()
    }

    /// What the application has attached to the connection or the HTTP request.
    pub fn extensions(&self) -> &Extensions {
        &self.connection().extensions
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
}

impl Connection {
    /// A connection of which only the transport is known.
    pub fn new(transport: &'static str) -> Self {
        let headers = Headers::from(HeaderMap::new());
        Self { transport, remote: None, extensions: Extensions::new(), headers }
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
