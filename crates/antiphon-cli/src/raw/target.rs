//! The other side: an endpoint, its name, and where it is.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use antiphon::transport::tls::TlsClient;
use antiphon::{Authority, Endpoint, Framing};
use http::{HeaderName, HeaderValue};

use crate::endpoint;
use crate::exit::{Exit, Failure};

/// An endpoint that may have a name: `NAME=ENDPOINT`.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: Option<String>,
    pub(crate) endpoint: Endpoint,
}

/// Reads `NAME=ENDPOINT`; an `=` after the scheme is the endpoint's own.
pub(crate) fn named(text: &str) -> Result<Named, String> {
    let (name, endpoint) = match text.split_once('=') {
        Some((name, endpoint)) if !name.contains(':') => (Some(name.to_owned()), endpoint),
        _ => (None, text),
    };
    if name.as_deref() == Some("") {
        return Err("a name is missing before the `=`".to_owned());
    }
    Ok(Named { name, endpoint: endpoint::callable(endpoint)? })
}

/// An endpoint to connect to.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) place: Place,
    pub(crate) speech: Speech,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Whom to trust, and the name that the server must prove, where there is TLS.
    pub(crate) tls: Option<(TlsClient, String)>,
    /// What a child process says on its stderr is for nobody.
    pub(crate) is_quiet: bool,
}

/// Whether it may be another machine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Remote {
    Allowed,
    /// And what to do about it.
    Refused(&'static str),
}

/// Where it is.
#[derive(Debug)]
pub(crate) enum Place {
    /// Looked up once, so that no connection waits for that.
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
    /// Each connection is a child process.
    Child(Vec<String>),
}

/// What is spoken there.
#[derive(Debug)]
pub(crate) enum Speech {
    Http { path: String, host: String },
    Ws { path: String, host: String },
    Stream(Framing),
}

impl Target {
    pub(crate) async fn find(
        named: Named,
        headers: &[(HeaderName, HeaderValue)],
        tls: &TlsClient,
        remote: Remote,
    ) -> Result<Self, Failure> {
        let Named { name, endpoint } = named;
        let speech = speech(&endpoint);
        if !headers.is_empty() && matches!(speech, Speech::Stream(_)) {
            return Err(Failure::usage(format!("{endpoint} has no headers"))
                .hint("-H is for http:// and ws://"));
        }
        let place = match &endpoint {
            Endpoint::Http { authority, .. }
            | Endpoint::Ws { authority, .. }
            | Endpoint::Tcp { authority, .. } => {
                Place::Tcp(addresses(&endpoint, authority, remote).await?)
            }
            Endpoint::Unix { path, .. } => Place::Unix(path.clone()),
            Endpoint::Exec { command, .. } => Place::Child(command.clone()),
            other => return Err(Failure::usage(format!("{other} cannot be called"))),
        };
        let name = name.unwrap_or_else(|| endpoint.to_string());
        let tls = host(&endpoint).map(|host| (tls.clone(), host.to_owned()));
        Ok(Self { name, endpoint, place, speech, headers: headers.to_vec(), tls, is_quiet: false })
    }

    /// Why there is no connection to it.
    pub(crate) fn unreachable(&self, error: &io::Error) -> Failure {
        let endpoint = &self.endpoint;
        let exit = match error.kind() {
            ErrorKind::TimedOut => Exit::Timeout,
            _ => Exit::Transport,
        };
        let failure = Failure::new(exit, format!("cannot connect to {endpoint}: {error}"));
        match (error.kind(), &self.place) {
            (ErrorKind::NotFound, Place::Child(_)) => {
                failure.hint("check that the command is installed and on the PATH")
            }
            (ErrorKind::ConnectionRefused | ErrorKind::NotFound, _) => failure.hint(format!(
                "is the server running there? `antiphon serve {endpoint}` starts one to try"
            )),
            _ => failure,
        }
    }
}

/// The host that must prove its name.
fn host(endpoint: &Endpoint) -> Option<&str> {
    match endpoint {
        Endpoint::Http { authority, secure: true, .. }
        | Endpoint::Ws { authority, secure: true, .. }
        | Endpoint::Tcp { authority, secure: true, .. } => Some(&authority.host),
        _ => None,
    }
}

fn speech(endpoint: &Endpoint) -> Speech {
    match endpoint {
        Endpoint::Http { authority, path, .. } => {
            Speech::Http { path: path.clone(), host: authority.to_string() }
        }
        Endpoint::Ws { authority, path, .. } => {
            Speech::Ws { path: path.clone(), host: authority.to_string() }
        }
        Endpoint::Tcp { framing, .. }
        | Endpoint::Unix { framing, .. }
        | Endpoint::Exec { framing, .. } => Speech::Stream(framing.unwrap_or(Framing::Line)),
        _ => Speech::Stream(Framing::Line),
    }
}

/// The addresses of a host: of this machine, unless another one is allowed.
async fn addresses(
    endpoint: &Endpoint,
    authority: &Authority,
    remote: Remote,
) -> Result<Vec<SocketAddr>, Failure> {
    let refuse = |hint| Failure::usage(format!("{endpoint} is not on this machine")).hint(hint);
    if let Remote::Refused(hint) = remote
        && !is_loopback_name(&authority.host)
    {
        return Err(refuse(hint));
    }
    let port = if endpoint.is_secure() { 443 } else { 80 };
    let host = (authority.host.as_str(), authority.port.unwrap_or(port));
    let found = tokio::net::lookup_host(host).await.map_err(|error| {
        Failure::new(Exit::Transport, format!("`{}` cannot be found: {error}", authority.host))
    })?;
    let found: Vec<SocketAddr> = found.collect();
    if let Remote::Refused(hint) = remote
        && !found.iter().all(|address| is_loopback(address.ip()))
    {
        return Err(refuse(hint));
    }
    Ok(found)
}

fn is_loopback_name(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_name = name == "localhost" || name.ends_with(".localhost");
    is_name || host.parse().is_ok_and(is_loopback)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_scheme() {
        for (text, name, endpoint) in [
            ("a=http://h:1", Some("a"), "http://h:1"),
            ("http://h:1/?a=b", None, "http://h:1/?a=b"),
            ("exec:server --a=b", None, "exec:server '--a=b'"),
            ("my server=exec:server --a=b", Some("my server"), "exec:server '--a=b'"),
        ] {
            let named = named(text).unwrap();
            assert_eq!((named.name.as_deref(), &*named.endpoint.to_string()), (name, endpoint));
        }
        for bad in ["=http://h:1", "a=", "a=stdio:", "memory:x"] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn loopback_is_this_machine() {
        for host in
            ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "LocalHost", "a.localhost"]
        {
            assert!(is_loopback_name(host), "{host}");
        }
        for host in ["example.org", "10.0.0.1", "0.0.0.0", "::", "localhost.example", "128.0.0.1"] {
            assert!(!is_loopback_name(host), "{host}");
        }
    }
}
