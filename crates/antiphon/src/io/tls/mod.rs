//! TLS for TCP, HTTP and WebSocket, server side and client side.
//!
//! [`TlsServer`] configures the certificate of a server and the clients that it accepts. [`TlsClient`]
//! configures the authorities that a client trusts and its own certificate. The handshake gives a
//! [`TlsStream`], which the transports read and write like a socket. The cryptography provider is
//! always `ring`; the default provider of the process is ignored.

mod client;
mod error;
mod handshake;
mod no_verification;
mod pem;
#[cfg(feature = "self-signed")]
mod self_signed;
mod server;
mod stream;

use std::fmt;
use std::sync::{Arc, LazyLock};

pub use rustls;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;

pub use client::TlsClient;
pub use error::TlsError;
#[cfg(feature = "self-signed")]
pub use self_signed::SelfSigned;
pub use server::TlsServer;
pub use stream::TlsStream;

pub(crate) use client::Connector;
pub(crate) use handshake::{Acceptor, HandshakeError};

/// The application protocols of a server, as ALPN names them (RFC 7301). Old clients offer HTTP/1.0:
/// a server accepts it, and a client does not offer it.
#[cfg(feature = "http")]
pub(crate) const SERVED: [&[u8]; 3] = [HTTP[0], HTTP[1], b"http/1.0"];
pub(crate) const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// HTTP/1.1 only, for the handshake of a WebSocket.
#[cfg(feature = "http")]
pub(crate) const HTTP1: [&[u8]; 1] = [HTTP[1]];
pub(crate) const HTTP2: [&[u8]; 1] = [HTTP[0]];

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));
    PROVIDER.clone()
}

/// The certificate chain of the peer, its own certificate first. The peer has proven that it owns the
/// private key.
///
/// If a server accepts client certificates, handlers find the chain in
/// [`Context::extensions`](crate::Context::extensions). It is verified: it leads to an authority that the
/// server trusts, and it is currently valid.
///
/// ```no_run
/// use antiphon::transport::tls::{PeerCertificates, TlsServer};
/// use antiphon::{Identity, Server};
///
/// # fn name_in(_der: &[u8]) -> Option<String> { None }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = TlsServer::from_pem_files("chain.pem", "key.pem")?
///     .require_client_certificates(std::fs::read("clients.pem")?)?;
/// let server = Server::bind("tls://0.0.0.0:4000").await?.tls(tls).on_connect(|connection| {
///     let certificates = connection.extensions.get::<PeerCertificates>();
///     if let Some(name) = certificates.and_then(|chain| name_in(chain.end_entity())) {
///         connection.extensions.insert(Identity::from(name));     // for `layer::Auth`
///     }
/// });
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PeerCertificates(Arc<[CertificateDer<'static>]>);

impl PeerCertificates {
    /// `None` if the peer has sent no certificate.
    fn new(chain: Option<&[CertificateDer<'static>]>) -> Option<Self> {
        let chain = chain.filter(|chain| !chain.is_empty())?;
        Some(Self(chain.iter().cloned().map(CertificateDer::into_owned).collect()))
    }

    /// The peer's own certificate, in DER.
    pub fn end_entity(&self) -> &[u8] {
        self.0.first().map_or(&[], |certificate| certificate)
    }

    /// The whole chain in DER: the peer's own certificate, then the intermediate certificates.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|certificate| &**certificate)
    }
}

impl fmt::Debug for PeerCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerCertificates({})", self.0.len())
    }
}
