//! The facts of a connection or of an HTTP request.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Extensions, HeaderMap};

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
    /// Assigned on first use, so that requests whose number nobody needs do not pay for it.
    pub(crate) id: OnceLock<u64>,
    /// The state of the layer that authenticates callers. Created on first use.
    pub(crate) session: OnceLock<Arc<dyn AuthState>>,
}

impl Connection {
    /// A connection of which only the transport is known.
    pub fn new(transport: &'static str) -> Self {
        let headers = Headers::from(HeaderMap::new());
        let (id, session) = (OnceLock::new(), OnceLock::new());
        Self { transport, remote: None, extensions: Extensions::new(), headers, id, session }
    }

    /// A number that no other connection of this process has. An HTTP request has one of its own.
    pub fn id(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        *self.id.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The headers of the HTTP request, or of the one that became a WebSocket; empty elsewhere.
    pub fn headers(&self) -> &HeaderMap {
        self.headers.map()
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

    /// Names the other side.
    #[must_use]
    pub fn from(mut self, remote: Option<SocketAddr>) -> Self {
        self.remote = remote;
        self
    }
}

/// The state that an authenticating layer keeps for a connection or an HTTP request.
///
/// The layer owns the meaning of it. A transport reads only the number of refused calls.
pub(crate) trait AuthState: Any + fmt::Debug + Send + Sync {
    /// The number of calls that were refused for lack of valid credentials.
    fn refused_calls(&self) -> usize;
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
