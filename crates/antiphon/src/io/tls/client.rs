//! The TLS configuration of a client: the authorities that it trusts, and its own certificate.

use std::fmt;
use std::io;
use std::sync::{Arc, LazyLock};
#[cfg(feature = "http")]
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
#[cfg(feature = "http")]
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::no_verification::NoCertificateVerification;
use super::{TlsError, TlsStream, error, pem, provider};

/// The TLS configuration of a client of `https://`, `wss://` and `tls://`. By default, it trusts the
/// authorities of the operating system.
///
/// ```no_run
/// use antiphon::{Client, transport::tls::TlsClient};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = TlsClient::new()
///     .extra_roots(std::fs::read("our-authority.pem")?)?
///     .client_certificate(std::fs::read("me.pem")?, std::fs::read("me.key")?)?;
/// let client = Client::builder().tls(tls).connect("wss://rpc.example/v1").await?;
/// # Ok(()) }
/// ```
///
/// The first connection that trusts the authorities of the operating system reads them from its files
/// with blocking I/O, once per process.
///
/// A [`rustls::ClientConfig`] converts with [`From`]. It is used unchanged, except that the application
/// protocols (ALPN) of the endpoint are added if it lists none. The other methods of this type then have
/// no effect.
#[derive(Clone, Default)]
pub struct TlsClient {
    without_system_roots: bool,
    extra_roots: Vec<CertificateDer<'static>>,
    identity: Option<ClientIdentity>,
    any_certificate: bool,
    ready: Option<Arc<ClientConfig>>,
}

type ClientIdentity = (Vec<CertificateDer<'static>>, Arc<PrivateKeyDer<'static>>);

impl TlsClient {
    /// Trusts the authorities of the operating system, and sends no client certificate. The
    /// environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` can replace those authorities.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also trusts these authorities, given in PEM. For a server with a self-signed certificate, pass
    /// that certificate.
    ///
    /// # Errors
    /// Fails if the text contains no certificate, or one that cannot be used as an authority.
    pub fn extra_roots(mut self, roots: impl AsRef<[u8]>) -> Result<Self, TlsError> {
        let roots = pem::certificates(roots.as_ref())?;
        // An invalid certificate fails here, and not at the first connection.
        let mut store = RootCertStore::empty();
        roots.iter().try_for_each(|root| store.add(root.clone()))?;
        self.extra_roots.extend(roots);
        Ok(self)
    }

    /// Trusts only the extra roots, not the authorities of the operating system.
    #[must_use]
    pub fn without_system_roots(mut self) -> Self {
        self.without_system_roots = true;
        self
    }

    /// Sends this certificate, with its intermediate certificates, to servers that request one. Chain
    /// and private key are in PEM.
    ///
    /// # Errors
    /// Fails if a text contains no certificate or no private key, or if the key does not belong to the
    /// certificate.
    pub fn client_certificate(
        mut self,
        chain: impl AsRef<[u8]>,
        private_key: impl AsRef<[u8]>,
    ) -> Result<Self, TlsError> {
        let chain = pem::certificates(chain.as_ref())?;
        let key = pem::private_key(private_key.as_ref())?;
        rustls::sign::CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider())?;
        self.identity = Some((chain, key.into()));
        Ok(self)
    }

    /// Skips certificate verification. Anyone on the network path can then read and change everything.
    /// Use it only for your own servers on your own machine.
    #[must_use]
    pub fn dangerously_accept_any_certificate(mut self) -> Self {
        self.any_certificate = true;
        self
    }

    /// Performs the handshake with the server of this name over a TCP connection that the caller has
    /// opened. The stream can then carry any protocol. There is no timeout: the caller sets one.
    ///
    /// # Errors
    /// Fails if the name is no DNS name or IP address, if the server does not speak TLS, or if a side
    /// rejects the certificate of the other. With TLS 1.3, a server may reject the client certificate only
    /// after the handshake: then the first read fails.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn connect(&self, stream: TcpStream, name: &str) -> io::Result<TlsStream> {
        Connector::new(self, name, &[])?.connect(stream).await
    }

    fn config(&self, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, TlsError> {
        let mut config = match &self.ready {
            Some(ready) => ClientConfig::clone(ready),
            None => self.build()?,
        };
        if config.alpn_protocols.is_empty() {
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        }
        Ok(config.into())
    }

    fn build(&self) -> Result<ClientConfig, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?;
        let builder = if self.any_certificate {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(NoCertificateVerification))
        } else {
            // `WebPkiServerVerifier` cannot be built without roots. Without roots, connecting must
            // fail, and not the creation of this configuration.
            let roots = self.roots()?;
            match roots.is_empty() {
                true => builder.with_root_certificates(roots),
                false => {
                    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider());
                    let unusable = |error: rustls::server::VerifierBuilderError| {
                        TlsError::Unusable(error.into())
                    };
                    builder.with_webpki_verifier(verifier.build().map_err(unusable)?)
                }
            }
        };
        Ok(match &self.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain.clone(), key.clone_key())?,
        })
    }

    fn roots(&self) -> Result<Arc<RootCertStore>, TlsError> {
        if self.extra_roots.is_empty() && !self.without_system_roots {
            return Ok(SYSTEM_ROOTS.clone());
        }
        let mut roots = match self.without_system_roots {
            true => RootCertStore::empty(),
            false => RootCertStore::clone(&SYSTEM_ROOTS),
        };
        self.extra_roots.iter().try_for_each(|root| roots.add(root.clone()))?;
        Ok(roots.into())
    }
}

/// The trusted roots of the operating system. Loaded once, on first use.
static SYSTEM_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (_, ignored) = roots.add_parsable_certificates(found.certs);
    if roots.is_empty() || ignored > 0 || !found.errors.is_empty() {
        let (trusted, errors) = (roots.len(), found.errors);
        tracing::warn!(
            trusted,
            ignored,
            ?errors,
            "some trusted roots of the operating system cannot be read"
        );
    }
    roots.into()
});

impl From<ClientConfig> for TlsClient {
    fn from(config: ClientConfig) -> Self {
        Self { ready: Some(config.into()), ..Self::default() }
    }
}

impl fmt::Debug for TlsClient {
    /// Omits the private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient")
            .field("without_system_roots", &self.without_system_roots)
            .field("extra_roots", &self.extra_roots.len())
            .field("any_certificate", &self.any_certificate)
            .finish_non_exhaustive()
    }
}

/// Opens TLS connections to one server. It remembers sessions, so that later handshakes are shorter.
#[derive(Clone)]
pub(crate) struct Connector {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Connector {
    /// Creates the connector for the server of this name, which offers these application protocols.
    pub(crate) fn new(tls: &TlsClient, name: &str, protocols: &[&[u8]]) -> Result<Self, TlsError> {
        let invalid = |_| TlsError::Name(name.to_owned());
        Ok(Self {
            connector: tls.config(protocols)?.into(),
            name: ServerName::try_from(name.to_owned()).map_err(invalid)?,
        })
    }

    /// A connector that offers only these protocols. Both connectors share remembered sessions.
    #[cfg(feature = "http")]
    pub(crate) fn offering(&self, protocols: &[&[u8]]) -> Self {
        let mut config = ClientConfig::clone(self.connector.config());
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Self { connector: Arc::new(config).into(), name: self.name.clone() }
    }

    /// Performs the handshake, with a timeout.
    #[cfg(feature = "http")]
    pub(crate) async fn connect_within(
        &self,
        stream: TcpStream,
        limit: Duration,
    ) -> io::Result<TlsStream> {
        let outcome = timeout(limit, self.connect(stream)).await;
        outcome.unwrap_or_else(|_| Err(error::handshake_timed_out(limit)))
    }

    /// Performs the handshake.
    pub(crate) async fn connect(&self, stream: TcpStream) -> io::Result<TlsStream> {
        // Boxed, because otherwise every future that connects would be as large as a session.
        let outcome = Box::pin(self.connector.connect(self.name.clone(), stream)).await;
        let failed = |error| error::handshake_failed(error, &self.name.to_str());
        let stream = outcome.map_err(failed)?;
        Ok(TlsStream::new(stream.into()))
    }
}
