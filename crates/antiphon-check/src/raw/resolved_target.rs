//! An address that is resolved and ready for connections.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use http::{HeaderName, HeaderValue};

use super::address::{Address, AddressProtocol, AddressRoute};
use super::tls::TlsOptions;
use crate::error::{CheckError, CheckErrorKind};

/// An address that is resolved and ready for connections.
#[derive(Debug)]
pub struct ResolvedTarget {
    /// The name in reports; the address, unless it is set.
    pub name: String,
    /// The address.
    pub address: Address,
    pub(crate) location: TargetLocation,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The TLS options and the name that the server must prove, where the address is secure.
    pub(crate) tls: Option<(TlsOptions, String)>,
    /// Discards the stderr of a child process.
    pub(crate) is_quiet: bool,
}

/// The policy for targets on other machines.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RemoteHosts {
    /// Other machines are allowed.
    Allowed,
    /// Other machines are refused; the error gets this hint.
    Refused(&'static str),
}

/// The resolved location of a target.
#[derive(Debug)]
pub(crate) enum TargetLocation {
    /// Resolved once, so that a new connection never waits for a lookup.
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
    /// One child process per connection.
    Child(Vec<String>),
}

impl ResolvedTarget {
    /// Resolves the address.
    ///
    /// # Errors
    ///
    /// The host is unknown or refused, or the protocol has no headers.
    pub async fn resolve(
        address: Address,
        headers: &[(HeaderName, HeaderValue)],
        tls: &TlsOptions,
        remote: RemoteHosts,
    ) -> Result<Self, CheckError> {
        if !headers.is_empty() && matches!(address.protocol, AddressProtocol::Stream(_)) {
            return Err(CheckError::usage(format!("{address} has no headers"))
                .hint("-H is for http:// and ws://"));
        }
        let location = match &address.route {
            AddressRoute::Tcp { host, port } => {
                TargetLocation::Tcp(lookup(&address, host, *port, remote).await?)
            }
            AddressRoute::Unix(path) => TargetLocation::Unix(path.clone()),
            AddressRoute::Exec(command) => TargetLocation::Child(command.clone()),
        };
        let tls = match &address.route {
            AddressRoute::Tcp { host, .. } if address.is_secure => {
                Some((tls.clone(), host.clone()))
            }
            _ => None,
        };
        let name = address.to_string();
        Ok(Self { name, address, location, headers: headers.to_vec(), tls, is_quiet: false })
    }

    /// Reports whether the server is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        match &self.location {
            TargetLocation::Tcp(addresses) => addresses.iter().all(|found| is_loopback(found.ip())),
            TargetLocation::Unix(_) | TargetLocation::Child(_) => true,
        }
    }

    /// Describes why a connection failed.
    pub fn unreachable(&self, error: &io::Error) -> CheckError {
        let address = &self.address;
        let kind = match error.kind() {
            ErrorKind::TimedOut => CheckErrorKind::TimedOut,
            _ => CheckErrorKind::Unreachable,
        };
        let failure = CheckError::new(kind, format!("cannot connect to {address}: {error}"));
        match (error.kind(), &self.location) {
            (ErrorKind::NotFound, TargetLocation::Child(_)) => {
                failure.hint("check that the command is installed and on the PATH")
            }
            (ErrorKind::ConnectionRefused | ErrorKind::NotFound, _) => failure.hint(format!(
                "is the server running there? `antiphon serve {address}` starts a demo server"
            )),
            _ => failure,
        }
    }
}

/// Resolves a host: to this machine, unless another one is allowed.
async fn lookup(
    address: &Address,
    host: &str,
    port: u16,
    remote: RemoteHosts,
) -> Result<Vec<SocketAddr>, CheckError> {
    let refuse = |hint| CheckError::usage(format!("{address} is not on this machine")).hint(hint);
    if let RemoteHosts::Refused(hint) = remote
        && !is_loopback_name(host)
    {
        return Err(refuse(hint));
    }
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| {
        let what = format!("cannot resolve `{host}`: {error}");
        CheckError::new(CheckErrorKind::Unreachable, what)
    })?;
    let found: Vec<SocketAddr> = found.collect();
    if let RemoteHosts::Refused(hint) = remote
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
