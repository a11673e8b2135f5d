//! What a server shows, and which clients it takes.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier};

use super::{TlsError, pem, provider};

/// What a server on `https://`, `wss://` and `tls://` shows: its certificates, and the key to them.
///
/// ```no_run
/// use antiphon::{Context, Router, Server, transport::tls::TlsServer};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let router = Router::new().method("ping", |(): (), _cx: Context| async {
///     Ok("pong")
/// });
/// let tls = TlsServer::from_pem_files("chain.pem", "key.pem")?;
/// Server::bind("https://0.0.0.0:443").await?.tls(tls).serve(router).await?;
/// # Ok(()) }
/// ```
///
/// A configuration of rustls serves as it is, with [`From`]; where it names no protocols (ALPN), those
/// of the endpoint are added.
#[derive(Clone)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
}

impl TlsServer {
    /// From PEM: the server's certificate with those that lead to its authority, and its private key.
    pub fn from_pem(
        chain: impl AsRef<[u8]>,
        private_key: impl AsRef<[u8]>,
    ) -> Result<Self, TlsError> {
        let chain = pem::certificates(chain.as_ref())?;
        Self::new(chain, pem::private_key(private_key.as_ref())?)
    }

    /// The same from two files; one file that holds both may be named twice.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        private_key: impl AsRef<Path>,
    ) -> Result<Self, TlsError> {
        Self::from_pem(pem::read(chain.as_ref())?, pem::read(private_key.as_ref())?)
    }

    pub(super) fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        Ok(builder()?.with_no_client_auth().with_single_cert(chain, key)?.into())
    }

    /// Takes only clients that show a certificate of one of these authorities, in PEM. Handlers find
    /// it: see [`PeerCertificates`](super::PeerCertificates).
    ///
    /// Of a configuration that was given whole, nothing is kept but its certificates.
    pub fn require_client_certificates(
        self,
        authorities: impl AsRef<[u8]>,
    ) -> Result<Self, TlsError> {
        self.clients(authorities.as_ref(), true)
    }

    /// The same for clients that have one; those that have none are taken too.
    pub fn accept_client_certificates(
        self,
        authorities: impl AsRef<[u8]>,
    ) -> Result<Self, TlsError> {
        self.clients(authorities.as_ref(), false)
    }

    fn clients(self, authorities: &[u8], required: bool) -> Result<Self, TlsError> {
        let shown = self.config.cert_resolver.clone();
        let verifier = verifier(authorities, required)?;
        Ok(builder()?.with_client_cert_verifier(verifier).with_cert_resolver(shown).into())
    }

    /// The configuration for an endpoint where these protocols are spoken.
    pub(super) fn config(&self, protocols: &[&[u8]]) -> Arc<ServerConfig> {
        if protocols.is_empty() || !self.config.alpn_protocols.is_empty() {
            return self.config.clone();
        }
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.into()
    }
}

fn builder() -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, TlsError> {
    Ok(ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?)
}

fn verifier(authorities: &[u8], required: bool) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    pem::trust(&mut roots, authorities)?;
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
    let builder = if required { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(|error| TlsError::Unusable(error.to_string()))
}

impl From<ServerConfig> for TlsServer {
    fn from(config: ServerConfig) -> Self {
        Self { config: config.into() }
    }
}

impl fmt::Debug for TlsServer {
    /// Nothing of it, since some of it is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServer").finish_non_exhaustive()
    }
}
