//! Whom a client trusts, and what it shows.

use std::fmt;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::danger::AnyCertificate;
use super::{TlsError, TlsStream, fault, pem, provider};

/// Whom a client of `https://`, `wss://` and `tls://` trusts: the authorities that this system does,
/// unless something is said here.
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
/// A configuration of rustls is used as it is, with [`From`].
#[derive(Clone, Default)]
pub struct TlsClient {
    without_system_roots: bool,
    extra_roots: Vec<CertificateDer<'static>>,
    identity: Option<Identity>,
    any_certificate: bool,
    ready: Option<Arc<ClientConfig>>,
}

type Identity = (Vec<CertificateDer<'static>>, Arc<PrivateKeyDer<'static>>);

impl TlsClient {
    /// Trusts the authorities of this system, and shows nothing. Where they are kept, `SSL_CERT_FILE`
    /// and `SSL_CERT_DIR` can say.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts these authorities too, in PEM; or this certificate, where a server has signed its own.
    pub fn extra_roots(mut self, roots: impl AsRef<[u8]>) -> Result<Self, TlsError> {
        let roots = pem::certificates(roots.as_ref())?;
        // One that is no certificate is refused here, and not when it is needed.
        let mut store = RootCertStore::empty();
        roots.iter().try_for_each(|root| store.add(root.clone()))?;
        self.extra_roots.extend(roots);
        Ok(self)
    }

    /// Trusts only the extra roots, and not the authorities of this system.
    #[must_use]
    pub fn without_system_roots(mut self) -> Self {
        self.without_system_roots = true;
        self
    }

    /// Shows this certificate, with those that lead to its authority, to servers that ask for one. Both
    /// are in PEM.
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

    /// Takes any certificate from anybody: whoever sits in between can read and change everything.
    /// For servers of your own, on a machine of your own.
    #[must_use]
    pub fn dangerously_accept_any_certificate(mut self) -> Self {
        self.any_certificate = true;
        self
    }

    /// Shakes hands with a server of this name over a connection of one's own, to which any protocol
    /// can then be spoken. There is no limit of time but the caller's.
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
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate))
        } else {
            // The verifier itself refuses to trust nobody at all; here a server is refused then.
            let roots = self.roots()?;
            match roots.is_empty() {
                true => builder.with_root_certificates(roots),
                false => {
                    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider());
                    let unusable = |error: rustls::server::VerifierBuilderError| {
                        TlsError::Unusable(error.to_string())
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

/// Whom this system trusts; read once, when it is first needed.
static SYSTEM_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (_, ignored) = roots.add_parsable_certificates(found.certs);
    if roots.is_empty() || ignored > 0 || !found.errors.is_empty() {
        let (trusted, errors) = (roots.len(), found.errors);
        tracing::warn!(trusted, ignored, ?errors, "not all roots of this system can be read");
    }
    roots.into()
});

impl From<ClientConfig> for TlsClient {
    fn from(config: ClientConfig) -> Self {
        Self { ready: Some(config.into()), ..Self::default() }
    }
}

impl fmt::Debug for TlsClient {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient")
            .field("without_system_roots", &self.without_system_roots)
            .field("extra_roots", &self.extra_roots.len())
            .field("any_certificate", &self.any_certificate)
            .finish_non_exhaustive()
    }
}

/// What shakes hands with one server, as often as needed: it remembers sessions.
#[derive(Clone)]
pub(crate) struct Connector {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Connector {
    /// For a server of this name with which one of these protocols is to be spoken.
    pub(crate) fn new(tls: &TlsClient, name: &str, protocols: &[&[u8]]) -> Result<Self, TlsError> {
        let wrong = |_| TlsError::Name(name.to_owned());
        Ok(Self {
            connector: tls.config(protocols)?.into(),
            name: ServerName::try_from(name.to_owned()).map_err(wrong)?,
        })
    }

    /// The same for these protocols alone. Sessions are remembered together.
    pub(crate) fn offering(&self, protocols: &[&[u8]]) -> Self {
        let mut config = ClientConfig::clone(self.connector.config());
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Self { connector: Arc::new(config).into(), name: self.name.clone() }
    }

    /// Shakes hands, within this time.
    pub(crate) async fn connect_within(
        &self,
        stream: TcpStream,
        limit: Duration,
    ) -> io::Result<TlsStream> {
        let shaken = timeout(limit, self.connect(stream)).await;
        shaken.unwrap_or_else(|_| Err(fault::late(limit)))
    }

    /// Shakes hands.
    pub(crate) async fn connect(&self, stream: TcpStream) -> io::Result<TlsStream> {
        // Boxed, or whatever connects would be as large as a session.
        let shaken = Box::pin(self.connector.connect(self.name.clone(), stream)).await;
        let stream = shaken.map_err(|error| fault::of_handshake(error, &self.name.to_str()))?;
        Ok(TlsStream::new(stream.into()))
    }
}
