//! Who asks: what is known of an HTTP connection, for each request on it.

use std::net::SocketAddr;
#[cfg(feature = "tls")]
use std::sync::Arc;
use std::sync::OnceLock;

use http::Extensions;

use crate::connection::{Connection, Headers};
#[cfg(feature = "tls")]
use crate::io::tls::PeerCertificates;

/// The other side of an HTTP connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remote {
    remote: Option<SocketAddr>,
    /// What was shown, where there is TLS. In one word, since each request carries it.
    #[cfg(feature = "tls")]
    tls: Option<Arc<Option<PeerCertificates>>>,
}

impl Remote {
    /// The peer of a connection, by its facts.
    pub(crate) fn from_facts(facts: &Connection) -> Self {
        Self {
            remote: facts.remote,
            #[cfg(feature = "tls")]
            tls: (facts.transport == "tls").then(|| Arc::new(facts.extensions.get().cloned())),
        }
    }

    /// Whether a connection of ours carries it: a request that was made by hand has no wire to obey.
    pub(super) fn is_connected(&self) -> bool {
        self.remote.is_some()
    }

    /// The facts of a request.
    pub(super) fn connection(
        &self,
        [plain, _secure]: [&'static str; 2],
        headers: Headers,
        extensions: Extensions,
    ) -> Connection {
        let (remote, id, session) = (self.remote, OnceLock::new(), OnceLock::new());
        let mut connection =
            Connection { transport: plain, remote, extensions, headers, id, session };
        #[cfg(feature = "tls")]
        if let Some(shown) = &self.tls {
            connection.transport = _secure;
            if let Some(shown) = &**shown {
                connection.extensions.insert(shown.clone());
            }
        }
        connection
    }
}
