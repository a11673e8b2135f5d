//! TLS below TCP, HTTP and WebSocket, both sides: who proves to be who, and what is kept secret.
//!
//! [`TlsServer`] says what a server shows, and which clients it takes; [`TlsClient`] whom a client
//! trusts, and what it shows. What follows the handshake is a [`TlsStream`], and the transports read
//! and write it as they do a socket. The cryptography is always `ring`'s: what a process has chosen
//! as its default is not asked.

mod client;
mod danger;
mod fault;
mod handshake;
mod pem;
#[cfg(feature = "self-signed")]
mod self_signed;
mod server;
mod stream;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

pub use rustls;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;

pub use client::TlsClient;
#[cfg(feature = "self-signed")]
pub use self_signed::SelfSigned;
pub use server::TlsServer;
pub use stream::TlsStream;

pub(crate) use client::Connector;
pub(crate) use handshake::{Acceptor, Unsecured};

/// What is spoken above TLS, as the handshake names it (RFC 7301). Old clients name HTTP/1.0, which a
/// server takes and a client does not ask for.
pub(crate) const SERVED: [&[u8]; 3] = [HTTP[0], HTTP[1], b"http/1.0"];
pub(crate) const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// The same where only HTTP/1.1 will do: a WebSocket begins with it.
pub(crate) const HTTP1: [&[u8]; 1] = [HTTP[1]];
pub(crate) const HTTP2: [&[u8]; 1] = [HTTP[0]];

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));
    PROVIDER.clone()
}

/// The certificates that the other side has shown and proven to own, its own one first.
///
/// Where a server takes client certificates, handlers find them in
/// [`Context::extensions`](crate::Context::extensions). They are verified: of an authority that the
/// server trusts, and valid today.
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
///     let shown = connection.extensions.get::<PeerCertificates>();
///     if let Some(name) = shown.and_then(|shown| name_in(shown.end_entity())) {
///         connection.extensions.insert(Identity::from(name));     // for `layer::Auth`
///     }
/// });
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PeerCertificates(Arc<[CertificateDer<'static>]>);

impl PeerCertificates {
    /// None, where nothing was shown.
    fn new(shown: Option<&[CertificateDer<'static>]>) -> Option<Self> {
        let shown = shown.filter(|shown| !shown.is_empty())?;
        Some(Self(shown.iter().cloned().map(CertificateDer::into_owned).collect()))
    }

    /// The certificate of the other side itself, in DER.
    pub fn end_entity(&self) -> &[u8] {
        self.0.first().map_or(&[], |certificate| certificate)
    }

    /// All of them in DER: the other side's own, and those that lead to an authority.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|certificate| &**certificate)
    }
}

impl fmt::Debug for PeerCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerCertificates({})", self.0.len())
    }
}

/// Why there is no TLS with these certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was given is not PEM, or holds nothing of that kind.
    #[error("there is no {wanted} here; PEM has one between `-----BEGIN` and `-----END` lines")]
    Missing {
        /// A certificate, or a private key.
        wanted: &'static str,
    },
    /// The certificates, or the key to them, cannot be used.
    #[error("the certificate or its key cannot be used: {0}")]
    Unusable(String),
    /// Of this name no certificate can be.
    #[error("`{0}` is no name of a server; use a DNS name or an address")]
    Name(String),
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self::Unusable(match error {
            rustls::Error::InconsistentKeys(_) => "the key is not that of the certificate".into(),
            other => other.to_string(),
        })
    }
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}
