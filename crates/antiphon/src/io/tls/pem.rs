//! Certificates and private keys in PEM (RFC 7468).

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// Returns all certificates of a PEM text; an error if there is none.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let missing = TlsError::Missing { wanted: "certificate", file: None };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or(missing)
}

/// Returns the first private key of a PEM text. The error gives no detail: it could repeat parts of
/// the key in a log.
pub(super) fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    let missing = TlsError::Missing { wanted: "private key", file: None };
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| missing)
}

/// Adds the certificates of a PEM text to the trusted roots.
pub(super) fn trust(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), TlsError> {
    for certificate in certificates(pem)? {
        roots.add(certificate)?;
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })
}
