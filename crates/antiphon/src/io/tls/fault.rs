//! What went wrong, in words that name the remedy.

use std::io;
use std::time::Duration;

use rustls::{AlertDescription as Alert, CertificateError, Error, InvalidMessage};

/// Why a handshake with a server of this name failed.
pub(super) fn of_handshake(error: io::Error, name: &str) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        let text = "the server ended the connection in the TLS handshake; does it speak TLS there?";
        return told(text.to_owned());
    }
    explain(error, |error| match error {
        Error::InvalidCertificate(fault) => Some(of_certificate(fault, name)),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => {
            let plain = "the server does not speak TLS there; use http://, ws:// or tcp://";
            Some(plain.to_owned())
        }
        other => of_alert(other),
    })
}

/// A handshake that takes too long.
pub(super) fn late(limit: Duration) -> io::Error {
    told(format!("no TLS handshake within {limit:?}; does the server speak TLS there?"))
}

/// Why a connection broke whose handshake was done. A server that refuses what the client has shown
/// says so only then.
pub(super) fn of_stream(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        let text = "the TLS connection was cut off; the other side did not say goodbye";
        return io::Error::new(io::ErrorKind::UnexpectedEof, text);
    }
    explain(error, of_alert)
}

fn explain(error: io::Error, say: impl FnOnce(&Error) -> Option<String>) -> io::Error {
    let known = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match known.map(|known| say(known).unwrap_or_else(|| format!("TLS failed: {known}"))) {
        Some(text) => told(text),
        None => error,
    }
}

fn told(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn of_certificate(fault: &CertificateError, name: &str) -> String {
    let subject = format!("the certificate of {name}");
    match fault {
        CertificateError::UnknownIssuer => format!(
            "{subject} is of nobody who is trusted here; trust its authority as an extra root"
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("{subject} has expired; renew it, or set the clock right")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{subject} is not valid yet; wait, or set the clock right")
        }
        CertificateError::NotValidForName => {
            format!("{subject} is for another name; call the server by its own")
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("{subject} is for another name: {}", presented.join(", "))
        }
        other => format!("{subject} is not accepted: {other}"),
    }
}

fn of_alert(error: &Error) -> Option<String> {
    let Error::AlertReceived(alert) = error else { return None };
    Some(match alert {
        Alert::CertificateRequired | Alert::NoCertificate => {
            "the other side asks for a client certificate; show it one".to_owned()
        }
        Alert::UnknownCA
        | Alert::BadCertificate
        | Alert::CertificateUnknown
        | Alert::CertificateExpired
        | Alert::CertificateRevoked
        | Alert::UnsupportedCertificate
        | Alert::AccessDenied => {
            format!("the other side does not accept our certificate ({alert:?})")
        }
        Alert::NoApplicationProtocol => "the server does not speak this version of HTTP".to_owned(),
        other => format!("the other side ended TLS with {other:?}"),
    })
}
