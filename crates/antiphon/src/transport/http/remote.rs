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
    pub(crate) fn new(remote: Option<SocketAddr>) -> Self {
        Self {
            remote,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Whether a connection of ours carries it: a request that was made by hand has no wire to obey.
    pub(super) fn is_connected(&self) -> bool {
        self.remote.is_some()
    }

    /// By TLS, where it has shown this.
    #[cfg(feature = "tls")]
    pub(crate) fn secured(mut self, certificates: Option<PeerCertificates>) -> Self {
        self.tls = Some(Arc::new(certificates));
        self
    }

    /// The facts of a request.
    pub(super) fn connection(
        &self,
        [plain, _secure]: [&'static str; 2],
        headers: Headers,
        extensions: Extensions,
    ) -> Connection {
        let (remote, session) = (self.remote, OnceLock::new());
        let mut connection = Connection { transport: plain, remote, extensions, headers, session };
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
