//! What stands in PEM (RFC 7468): certificates and keys.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// All certificates of a text, of which there is one at least.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let missing = TlsError::Missing { wanted: "certificate" };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or(missing)
}

/// The first private key of a text. What is wrong with one is not told: it might be repeated in a log.
pub(super) fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    let missing = TlsError::Missing { wanted: "private key" };
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| missing)
}

/// Adds the certificates of a text to those that are trusted.
pub(super) fn trust(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), TlsError> {
    for certificate in certificates(pem)? {
        roots.add(certificate)?;
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })
}
