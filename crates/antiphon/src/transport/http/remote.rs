//! The properties of an HTTP connection that all its requests share.

use std::net::SocketAddr;
#[cfg(feature = "tls")]
use std::sync::Arc;
use std::sync::OnceLock;

use http::Extensions;

use crate::connection::{Connection, ConnectionId, HttpHead};
#[cfg(feature = "tls")]
use crate::io::tls::PeerCertificates;

/// The client of an HTTP connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remote {
    source: RequestSource,
    /// The certificates of the client, if the connection has TLS. One word, since each request carries it.
    #[cfg(feature = "tls")]
    tls: Option<Arc<Option<PeerCertificates>>>,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, Default)]
enum RequestSource {
    /// A program constructed it, or another server passes it on.
    #[default]
    Program,
    /// A listener accepted its connection. A Unix socket has no address.
    Listener(Option<SocketAddr>),
}

impl Remote {
    /// Creates the client of a connection from its properties.
    pub(crate) fn from_facts(facts: &Connection) -> Self {
        Self {
            source: RequestSource::Listener(facts.remote),
            #[cfg(feature = "tls")]
            tls: (facts.transport == "tls").then(|| Arc::new(facts.extensions.get().cloned())),
        }
    }

    /// Whether a listener of this library accepted the connection.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.source, RequestSource::Listener(_))
    }

    /// Returns the properties of a request.
    #[inline]
    pub(super) fn connection(
        &self,
        [plain, _secure]: [&'static str; 2],
        head: HttpHead,
        extensions: Extensions,
    ) -> Connection {
        let remote = match self.source {
            RequestSource::Program => remote_of_axum(&extensions),
            RequestSource::Listener(remote) => remote,
        };
        let (id, session) = (ConnectionId::default(), OnceLock::new());
        #[cfg_attr(not(feature = "tls"), expect(unused_mut, reason = "TLS adds its properties"))]
        let mut connection = Connection { transport: plain, remote, extensions, head, id, session };
        #[cfg(feature = "tls")]
        if let Some(shown) = &self.tls {
            secure(&mut connection, _secure, shown.as_ref().as_ref());
        }
        connection
    }
}

/// The address that axum adds to a request if the application asks for it.
#[cfg(feature = "axum")]
fn remote_of_axum(extensions: &Extensions) -> Option<SocketAddr> {
    let axum::extract::ConnectInfo(remote) = extensions.get()?;
    Some(*remote)
}

#[cfg(not(feature = "axum"))]
fn remote_of_axum(_: &Extensions) -> Option<SocketAddr> {
    None
}

/// Adds the properties of TLS. Separate, so that `connection` is inlined and its result built in place.
#[cfg(feature = "tls")]
#[inline(never)]
fn secure(connection: &mut Connection, transport: &'static str, shown: Option<&PeerCertificates>) {
    connection.transport = transport;
    if let Some(shown) = shown {
        connection.extensions.insert(shown.clone());
    }
}
