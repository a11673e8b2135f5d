//! Certificate authorities and certificates for the TLS tests, created for each run.

use std::sync::LazyLock;

use antiphon::transport::tls::{TlsClient, TlsServer};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

/// Signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// A certificate and its key.
pub(crate) struct Certified {
    pub(crate) chain: String,
    pub(crate) key: String,
    pub(crate) der: Vec<u8>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Issues a certificate for this name.
    pub(crate) fn issue(&self, names: &[&str]) -> Certified {
        self.issue_until(names, 4096)
    }

    /// Issues a certificate for this name that is valid until the start of this year.
    pub(crate) fn issue_until(&self, names: &[&str], year: i32) -> Certified {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (chain, der) = (certificate.pem(), certificate.der().to_vec());
        Certified { chain, key: key.serialize_pem(), der }
    }
}

impl Certified {
    pub(crate) fn server(&self) -> TlsServer {
        TlsServer::from_pem(&self.chain, &self.key).unwrap()
    }
}

/// The certificate authority of the servers in these tests.
pub(crate) static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new("ours"));

/// The certificate of the servers in these tests.
pub(crate) fn local() -> &'static Certified {
    static LOCAL: LazyLock<Certified> =
        LazyLock::new(|| AUTHORITY.issue(&["localhost", "127.0.0.1"]));
    &LOCAL
}

/// A client configuration that trusts only this authority.
pub(crate) fn trusting() -> TlsClient {
    TlsClient::new().without_system_roots().extra_roots(&AUTHORITY.pem).unwrap()
}
