//! The client side of TLS: which servers are trusted, and which certificate is presented.
//!
//! It uses rustls directly and repeats parts of the library's TLS code on purpose: a fault of that code
//! must not hide itself from the checker.

use std::fmt;
use std::io;
use std::sync::{Arc, LazyLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, InvalidMessage,
    RootCertStore, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A TCP connection under TLS. Boxed, because the state of a session is large.
pub(crate) type RawTlsStream = Box<tokio_rustls::client::TlsStream<TcpStream>>;

/// The TLS options of a connection. By default, it trusts the certificate authorities of the system
/// and presents no certificate.
#[derive(Clone, Default)]
pub struct TlsOptions {
    extra_roots: Vec<CertificateDer<'static>>,
    identity: Option<(Vec<CertificateDer<'static>>, Arc<PrivateKeyDer<'static>>)>,
    accepts_any: bool,
}

impl TlsOptions {
    /// Trusts the certificates of this PEM text too: authorities, or one self-signed certificate.
    ///
    /// # Errors
    ///
    /// The text holds no certificate, or an unusable one.
    pub fn extra_roots(mut self, pem: &[u8]) -> Result<Self, String> {
        let roots = certificates(pem)?;
        let mut store = RootCertStore::empty();
        roots.iter().try_for_each(|root| store.add(root.clone())).map_err(|e| unusable(&e))?;
        self.extra_roots.extend(roots);
        Ok(self)
    }

    /// Presents this certificate chain to servers that ask for one. Both texts are PEM.
    ///
    /// # Errors
    ///
    /// A text holds no certificate or key, or the key belongs to another certificate.
    pub fn client_certificate(mut self, chain: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain = certificates(chain)?;
        // The parser's error could repeat the key in a log.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| missing("private key"))?;
        rustls::sign::CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider())
            .map_err(|error| unusable(&error))?;
        self.identity = Some((chain, key.into()));
        Ok(self)
    }

    /// Accepts any certificate. Whoever controls the network can read and change the traffic.
    #[must_use]
    pub fn accept_any_certificate(mut self) -> Self {
        self.accepts_any = true;
        self
    }

    /// Performs the handshake with a server of this name.
    pub(crate) async fn connect(&self, stream: TcpStream, name: &str) -> io::Result<RawTlsStream> {
        let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
        let config = self.config().map_err(invalid)?;
        let server = ServerName::try_from(name.to_owned()).map_err(|_| {
            invalid(format!("`{name}` is not a server name; use a DNS name or an address"))
        })?;
        let shaken = Box::pin(TlsConnector::from(Arc::new(config)).connect(server, stream)).await;
        shaken.map(Box::new).map_err(|error| explain_handshake(error, name))
    }

    fn config(&self) -> Result<ClientConfig, String> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let roots = self.roots();
        let builder = match (self.accepts_any, roots.is_empty()) {
            (true, _) => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified)),
            // The verifier cannot be built without roots; so every server is rejected.
            (false, true) => builder.with_root_certificates(roots),
            (false, false) => {
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider());
                builder.with_webpki_verifier(verifier.build().map_err(|error| error.to_string())?)
            }
        };
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some((chain, key)) => builder
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .map_err(|error| unusable(&error)),
        }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        if self.extra_roots.is_empty() {
            return SYSTEM_ROOTS.clone();
        }
        let mut roots = RootCertStore::clone(&SYSTEM_ROOTS);
        roots.add_parsable_certificates(self.extra_roots.iter().cloned());
        roots.into()
    }
}

impl fmt::Debug for TlsOptions {
    /// Leaves out the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("extra_roots", &self.extra_roots.len())
            .field("accepts_any", &self.accepts_any)
            .finish_non_exhaustive()
    }
}

/// The certificate authorities of the system, read on first use.
static SYSTEM_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (trusted, ignored) = roots.add_parsable_certificates(found.certs);
    if trusted == 0 || ignored > 0 || !found.errors.is_empty() {
        let errors = found.errors;
        tracing::warn!(trusted, ignored, ?errors, "cannot read all certificate authorities");
    }
    roots.into()
});

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));
    PROVIDER.clone()
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| missing("certificate"))
}

fn missing(wanted: &str) -> String {
    format!("no {wanted} found; PEM has one between `-----BEGIN` and `-----END` lines")
}

fn unusable(error: &Error) -> String {
    let reason = match error {
        Error::InconsistentKeys(_) => "the key does not belong to the certificate".to_owned(),
        other => other.to_string(),
    };
    format!("cannot use the certificate or its key: {reason}")
}

/// Replaces an error of the handshake with one that names the cause.
fn explain_handshake(error: io::Error, name: &str) -> io::Error {
    let text = match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server closed the connection in the TLS handshake; check that it speaks TLS"
                .to_owned()
        }
        None => return error,
        Some(Error::InvalidCertificate(fault)) => explain_certificate(fault, name),
        Some(Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        )) => "the server does not speak TLS; use http://, ws:// or tcp://".to_owned(),
        Some(other) => explain_alert(other),
    };
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Replaces an error after the handshake with one that names the cause. A server rejects a client
/// certificate only then.
pub(crate) fn explain_stream(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        let text = "the TLS connection ended without a close_notify";
        return io::Error::new(io::ErrorKind::UnexpectedEof, text);
    }
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(known) => io::Error::new(io::ErrorKind::InvalidData, explain_alert(known)),
        None => error,
    }
}

fn explain_certificate(fault: &CertificateError, name: &str) -> String {
    let reason = match fault {
        CertificateError::UnknownIssuer => {
            "is from an untrusted issuer; trust its authority as an extra root".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has expired; renew it, or correct the clock".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet; wait, or correct the clock".to_owned()
        }
        CertificateError::NotValidForName => {
            "is for another name; use the name of the certificate".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("is for another name: {}", presented.join(", "))
        }
        other => format!("is not accepted: {other}"),
    };
    format!("the certificate of {name} {reason}")
}

fn explain_alert(error: &Error) -> String {
    use AlertDescription as Alert;
    match error {
        Error::AlertReceived(Alert::CertificateRequired | Alert::NoCertificate) => {
            "the server requires a client certificate".to_owned()
        }
        Error::AlertReceived(
            alert @ (Alert::UnknownCA
            | Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::UnsupportedCertificate
            | Alert::AccessDenied),
        ) => format!("the server rejects the client certificate ({alert:?})"),
        Error::AlertReceived(Alert::NoApplicationProtocol) => {
            "the server does not speak this version of HTTP".to_owned()
        }
        Error::AlertReceived(other) => format!("the server ended TLS with {other:?}"),
        other => format!("TLS failed: {other}"),
    }
}

/// A verifier that accepts any certificate. The server still proves that it owns the key, which tells
/// a broken server from an untrusted one.
#[derive(Debug)]
struct Unverified;

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = provider().signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, &known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, &known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
