//! The TLS configuration of a server: its certificate, and the clients that it accepts.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier};

use super::{TlsError, pem, provider};

/// The TLS configuration of a server on `https://`, `wss://` and `tls://`: its certificate chain and
/// private key.
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
/// A [`rustls::ServerConfig`] converts with [`From`] and is used unchanged. If it lists no application
/// protocols (ALPN), those of the endpoint are added.
#[derive(Clone)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
}

impl TlsServer {
    /// Reads the server's certificate with its intermediate certificates, and its private key, from PEM.
    ///
    /// # Errors
    /// Fails if a text contains no certificate or no private key, or if the key does not belong to the
    /// certificate.
    pub fn from_pem(
        chain: impl AsRef<[u8]>,
        private_key: impl AsRef<[u8]>,
    ) -> Result<Self, TlsError> {
        let chain = pem::certificates(chain.as_ref())?;
        Self::new(chain, pem::private_key(private_key.as_ref())?)
    }

    /// Like [`from_pem`](Self::from_pem), for two files. If one file contains both, pass its path twice.
    ///
    /// This reads the files with blocking I/O. The files are read once: to use a renewed certificate,
    /// restart the server, or convert a [`rustls::ServerConfig`] with its own
    /// [`ResolvesServerCert`](rustls::server::ResolvesServerCert).
    ///
    /// # Errors
    /// Fails if a file cannot be read, or in the cases of [`from_pem`](Self::from_pem). The error names the
    /// file.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        private_key: impl AsRef<Path>,
    ) -> Result<Self, TlsError> {
        let (chain, private_key) = (chain.as_ref(), private_key.as_ref());
        let certificates = pem::certificates(&pem::read(chain)?);
        let key = pem::private_key(&pem::read(private_key)?);
        let certificates = certificates.map_err(|error| error.of_file(chain))?;
        let key = key.map_err(|error| error.of_file(private_key))?;
        Self::new(certificates, key).map_err(|error| error.of_files(chain, private_key))
    }

    pub(super) fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        Ok(builder()?.with_no_client_auth().with_single_cert(chain, key)?.into())
    }

    /// Requires a client certificate from one of these authorities, given in PEM. Handlers can read
    /// it: see [`PeerCertificates`](super::PeerCertificates).
    ///
    /// If this value was converted from a [`rustls::ServerConfig`], only its certificate and key are kept.
    ///
    /// # Errors
    /// Fails if the text contains no certificate, or one that cannot be used as an authority.
    pub fn require_client_certificates(
        self,
        authorities: impl AsRef<[u8]>,
    ) -> Result<Self, TlsError> {
        self.clients(authorities.as_ref(), true)
    }

    /// Like [`require_client_certificates`](Self::require_client_certificates), but also accepts
    /// clients without a certificate. A certificate that is not from these authorities is rejected.
    ///
    /// # Errors
    /// Like [`require_client_certificates`](Self::require_client_certificates).
    pub fn accept_client_certificates(
        self,
        authorities: impl AsRef<[u8]>,
    ) -> Result<Self, TlsError> {
        self.clients(authorities.as_ref(), false)
    }

    fn clients(self, authorities: &[u8], required: bool) -> Result<Self, TlsError> {
        let certificate = self.config.cert_resolver.clone();
        let verifier = verifier(authorities, required)?;
        Ok(builder()?.with_client_cert_verifier(verifier).with_cert_resolver(certificate).into())
    }

    /// The configuration for an endpoint with these application protocols.
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
    builder.build().map_err(|error| TlsError::Unusable(error.into()))
}

impl From<ServerConfig> for TlsServer {
    fn from(config: ServerConfig) -> Self {
        Self { config: config.into() }
    }
}

impl fmt::Debug for TlsServer {
    /// Shows no field: the configuration contains secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServer").finish_non_exhaustive()
    }
}
