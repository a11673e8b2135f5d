//! The errors of TLS: unusable certificates, failed handshakes and broken connections. Each message
//! names the remedy.

use std::io;
use std::path::{Path, PathBuf};
#[cfg(feature = "http")]
use std::time::Duration;

use rustls::{AlertDescription as Alert, CertificateError, Error, InvalidMessage};

/// The error of a TLS configuration: a certificate, key or name that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The input is not PEM, or does not contain an item of this kind.
    #[error(
        "found no {wanted} in {}; PEM has it between `-----BEGIN` and `-----END` lines",
        place(file.as_deref())
    )]
    Missing {
        /// `certificate` or `private key`.
        wanted: &'static str,
        /// The file that was read. `None` if the text was passed.
        file: Option<PathBuf>,
    },
    /// The certificates or their private key cannot be used.
    #[error("cannot use the certificate or its private key")]
    Unusable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Like [`Unusable`](Self::Unusable), for files.
    #[error(
        "cannot use the certificate in {} with the private key in {}",
        chain.display(),
        private_key.display()
    )]
    UnusableFiles {
        /// The file with the certificate chain.
        chain: PathBuf,
        /// The file with the private key.
        private_key: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The name is not a valid server name.
    #[error("`{0}` is not a valid server name; use a DNS name or an IP address")]
    Name(String),
}

fn place(file: Option<&Path>) -> String {
    file.map_or_else(|| "the PEM text".to_owned(), |file| file.display().to_string())
}

impl TlsError {
    /// Adds the file whose text cannot be used.
    pub(super) fn of_file(self, path: &Path) -> Self {
        match self {
            Self::Missing { wanted, .. } => Self::Missing { wanted, file: Some(path.to_owned()) },
            other => other,
        }
    }

    /// Adds the files of a certificate and a private key that cannot be used together.
    pub(super) fn of_files(self, chain: &Path, private_key: &Path) -> Self {
        match self {
            Self::Unusable(source) => {
                let (chain, private_key) = (chain.to_owned(), private_key.to_owned());
                Self::UnusableFiles { chain, private_key, source }
            }
            other => other,
        }
    }
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self::Unusable(match error {
            rustls::Error::InconsistentKeys(_) => {
                "the private key does not belong to the certificate".into()
            }
            other => other.into(),
        })
    }
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

/// The error of a failed handshake with the server of this name.
pub(super) fn handshake_failed(error: io::Error, name: &str) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        let text =
            "the server closed the connection during the TLS handshake; does this port speak TLS?";
        return invalid_data(text.to_owned());
    }
    explain(error, |error| match error {
        Error::InvalidCertificate(fault) => Some(certificate_message(fault, name)),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => {
            let plain = "the server does not speak TLS on this port; use http://, ws:// or tcp://";
            Some(plain.to_owned())
        }
        other => alert_message(other),
    })
}

/// The error of a handshake that did not finish within the timeout.
#[cfg(feature = "http")]
pub(super) fn handshake_timed_out(limit: Duration) -> io::Error {
    invalid_data(format!(
        "no TLS handshake within {limit:?}; does the server speak TLS on this port?"
    ))
}

/// The error of a connection that broke after the handshake. With TLS 1.3, a server rejects a client
/// certificate only then.
pub(super) fn connection_failed(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        let text = "the TLS connection was cut off: the peer sent no close_notify";
        return io::Error::new(io::ErrorKind::UnexpectedEof, text);
    }
    explain(error, alert_message)
}

fn explain(error: io::Error, message: impl FnOnce(&Error) -> Option<String>) -> io::Error {
    let known = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match known.map(|known| message(known).unwrap_or_else(|| format!("TLS failed: {known}"))) {
        Some(text) => invalid_data(text),
        None => error,
    }
}

fn invalid_data(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn certificate_message(fault: &CertificateError, name: &str) -> String {
    let subject = format!("the certificate of {name}");
    match fault {
        CertificateError::UnknownIssuer => format!(
            "{subject} is not from a trusted authority; trust its authority as an extra root"
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("{subject} has expired; renew it, or correct the clock")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{subject} is not valid yet; wait, or correct the clock")
        }
        CertificateError::NotValidForName => {
            format!("{subject} is for another name; connect with the name in the certificate")
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("{subject} is for another name: {}", presented.join(", "))
        }
        other => format!("{subject} was rejected: {other}"),
    }
}

fn alert_message(error: &Error) -> Option<String> {
    let Error::AlertReceived(alert) = error else { return None };
    Some(match alert {
        Alert::CertificateRequired | Alert::NoCertificate => {
            "the peer requires a client certificate; set one with `TlsClient::client_certificate`"
                .to_owned()
        }
        Alert::UnknownCA
        | Alert::BadCertificate
        | Alert::CertificateUnknown
        | Alert::CertificateExpired
        | Alert::CertificateRevoked
        | Alert::UnsupportedCertificate
        | Alert::AccessDenied => {
            format!(
                "the peer rejected our certificate ({alert:?}); use one that is valid now and from an \
                authority that the peer trusts"
            )
        }
        Alert::NoApplicationProtocol => {
            "the server supports no version of HTTP that this client offers; remove \
            `ClientBuilder::http2` if it is set"
                .to_owned()
        }
        other => format!("the peer closed the TLS connection with the alert {other:?}"),
    })
}
