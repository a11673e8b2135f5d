//! A self-signed certificate for development, generated at run time.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{TlsError, TlsServer};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The validity period. It begins one day in the past, because clocks differ.
const LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A self-signed certificate and its private key, which never leaves the process.
///
/// A client must trust it as an extra root, because no authority has signed it.
///
/// ```
/// use antiphon::{Client, Context, Router, Server};
/// use antiphon::transport::tls::{SelfSigned, TlsClient};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let own = SelfSigned::new(["localhost", "127.0.0.1"])?;
/// let server = Server::bind("tls://127.0.0.1:0").await?.tls(own.server()?);
/// let endpoint = server.endpoint().clone();
/// # let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
/// tokio::spawn(server.serve(router));
///
/// let tls = TlsClient::new().extra_roots(own.certificate_pem())?;
/// let client = Client::builder().tls(tls).connect(&endpoint).await?;
/// assert_eq!(client.call::<String>("ping", ()).await?, "pong");
/// # Ok(()) }
/// ```
pub struct SelfSigned {
    certificate: CertificateDer<'static>,
    pem: String,
    key: PrivatePkcs8KeyDer<'static>,
}

impl SelfSigned {
    /// Generates a certificate for a server with these names and addresses, valid for thirty days.
    ///
    /// # Errors
    /// Fails if a name is not ASCII.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, TlsError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let unusable = |error: rcgen::Error| TlsError::Unusable(error.into());
        let mut params = CertificateParams::new(names).map_err(unusable)?;
        params.distinguished_name.push(DnType::CommonName, "antiphon, for development");
        // The certificate cannot sign others, so a stolen key cannot create trusted certificates.
        params.is_ca = IsCa::ExplicitNoCa;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch = date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(DAY);
        params.not_after = epoch + now + LIFE;
        let key = KeyPair::generate().map_err(unusable)?;
        let certificate = params.self_signed(&key).map_err(unusable)?;
        Ok(Self {
            pem: certificate.pem(),
            certificate: certificate.into(),
            key: key.serialize_der().into(),
        })
    }

    /// Returns the configuration of a server with this certificate.
    ///
    /// # Errors
    /// Fails if rustls rejects the generated key, which is a defect of this library.
    pub fn server(&self) -> Result<TlsServer, TlsError> {
        let key = PrivateKeyDer::Pkcs8(self.key.clone_key());
        TlsServer::new(vec![self.certificate.clone()], key)
    }

    /// The certificate in PEM, for [`TlsClient::extra_roots`](super::TlsClient::extra_roots).
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// The SHA-256 of the certificate, as browsers and `openssl x509 -fingerprint` show it.
    pub fn fingerprint(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.certificate);
        let pairs: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }
}

impl fmt::Debug for SelfSigned {
    /// Omits the private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SelfSigned").field(&self.fingerprint()).finish()
    }
}
