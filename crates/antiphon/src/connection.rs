//! The properties of a connection or of an HTTP request.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Extensions, HeaderMap, Method};

/// The properties of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The transport's name as endpoints spell it: `http`, `https`, `ws`, `wss`, `tcp`, `tls`, `unix`,
    /// `stdio`, `exec`, `memory`. `custom` for transports of the application, unless it gives another
    /// name.
    pub transport: &'static str,
    /// The address of the peer, if the transport has addresses.
    pub remote: Option<SocketAddr>,
    /// Values that the application has attached.
    pub extensions: Extensions,
    pub(crate) head: HttpHead,
    pub(crate) id: ConnectionId,
    /// The state of the layer that authenticates callers. Created on first use.
    pub(crate) session: OnceLock<Arc<dyn AuthState>>,
}

impl Connection {
    /// Creates the description of a connection. Set the other fields afterwards.
    ///
    /// ```
    /// use antiphon::Connection;
    ///
    /// let mut connection = Connection::new("custom").with_remote(Some(([127, 0, 0, 1], 4000).into()));
    /// connection.extensions.insert("a value for the handlers");
    /// assert_eq!(connection.path(), None);
    /// ```
    pub fn new(transport: &'static str) -> Self {
        let head = HttpHead::Absent;
        let (id, session) = (ConnectionId::default(), OnceLock::new());
        Self { transport, remote: None, extensions: Extensions::new(), head, id, session }
    }

    /// Returns a number that no other connection of this process has. Each HTTP request has its own number.
    ///
    /// For an HTTP request, and for a `Connection` that the application has created, the first call assigns
    /// the number. Clones that were made before it get different numbers.
    pub fn id(&self) -> u64 {
        self.id.get()
    }

    /// The headers of the HTTP request, or of the one that opened the WebSocket; empty for other
    /// transports.
    pub fn headers(&self) -> &HeaderMap {
        static EMPTY: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
        self.head.parsed().map_or(&EMPTY, |head| &head.headers)
    }

    /// The method of the HTTP request, or of the one that opened the WebSocket; `None` for other
    /// transports.
    pub fn http_method(&self) -> Option<&Method> {
        self.head.parsed().map(|head| &head.method)
    }

    /// The path of the HTTP request, or of the one that opened the WebSocket; `None` for other
    /// transports.
    pub fn path(&self) -> Option<&str> {
        self.head.parsed()?.target.as_ref().map(PathAndQuery::path)
    }

    /// The query of the HTTP request, without the `?`.
    pub fn query(&self) -> Option<&str> {
        self.head.parsed()?.target.as_ref()?.query()
    }

    /// Whether each of this many calls was refused for lack of valid credentials.
    #[cfg(feature = "http")]
    #[inline]
    pub(crate) fn is_unauthorized(&self, calls: usize) -> bool {
        self.session.get().is_some_and(|session| {
            let refused = session.refused_calls();
            refused > 0 && refused >= calls
        })
    }

    /// Sets the address of the peer.
    #[must_use]
    pub fn with_remote(mut self, remote: Option<SocketAddr>) -> Self {
        self.remote = remote;
        self
    }
}

/// The number of a connection. Assigned on first use, so that a request whose number is not read does
/// not pay for it.
///
/// One word, because the properties of a request are moved for each call: with a `OnceLock` they would be
/// longer than the 256 bytes that one step of `memcpy` moves.
#[derive(Default)]
pub(crate) struct ConnectionId(AtomicU64);

impl ConnectionId {
    fn get(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        match self.0.load(Ordering::Relaxed) {
            0 => {
                let next = NEXT.fetch_add(1, Ordering::Relaxed);
                // Of two threads, the first one assigns the number.
                let assigned =
                    self.0.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
                assigned.map_or_else(|first| first, |_| next)
            }
            assigned => assigned,
        }
    }
}

impl Clone for ConnectionId {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The state that an authenticating layer keeps for a connection or an HTTP request.
///
/// Only the layer knows its content. A transport reads only the number of refused calls.
pub(crate) trait AuthState: Any + fmt::Debug + Send + Sync {
    /// The number of calls that were refused for lack of valid credentials.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only HTTP has a status for it"))]
    fn refused_calls(&self) -> usize;
}

/// The head of an HTTP request.
#[derive(Clone)]
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "without HTTP, there is none"))]
pub(crate) enum HttpHead {
    /// The transport is not HTTP.
    Absent,
    Parsed(HttpRequestHead),
    /// The bytes of the fast path, which are parsed on first use.
    Unparsed {
        text: Bytes,
        parse: fn(&Bytes) -> Option<HttpRequestHead>,
        parsed: OnceLock<Option<Box<HttpRequestHead>>>,
    },
}

/// The parts of a request's head that handlers can read.
#[derive(Clone)]
pub(crate) struct HttpRequestHead {
    pub(crate) method: Method,
    pub(crate) target: Option<PathAndQuery>,
    pub(crate) headers: HeaderMap,
}

impl HttpHead {
    /// A head whose text `parse` reads on first use.
    #[cfg(feature = "http")]
    pub(crate) fn unparsed(text: Bytes, parse: fn(&Bytes) -> Option<HttpRequestHead>) -> Self {
        Self::Unparsed { text, parse, parsed: OnceLock::new() }
    }

    fn parsed(&self) -> Option<&HttpRequestHead> {
        match self {
            Self::Absent => None,
            Self::Parsed(head) => Some(head),
            Self::Unparsed { text, parse, parsed } => {
                parsed.get_or_init(|| parse(text).map(Box::new)).as_deref()
            }
        }
    }
}

impl fmt::Debug for HttpHead {
    /// Prints the names of the headers only: the values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = match self {
            Self::Absent => None,
            Self::Parsed(head) => Some(head),
            Self::Unparsed { parsed, .. } => parsed.get().and_then(Option::as_deref),
        };
        let headers = head.map(|head| &head.headers);
        f.debug_list().entries(headers.into_iter().flat_map(HeaderMap::keys)).finish()
    }
}
