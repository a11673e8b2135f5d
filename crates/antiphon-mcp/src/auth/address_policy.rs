//! Which network addresses the documents of a server may lead to.
//!
//! A server names URLs that the client then fetches. A public server must not make the client reach into the network of
//! the client (server-side request forgery): such URLs are resolved first, and only public addresses are used. A server
//! that is in a private network itself may name others there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

use super::web_url::{WebUrlError, shortened};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Resolves the host of a URL that `server` has named; `None` if the application has named it.
pub(super) async fn addresses(
    url: &Url,
    server: Option<&Url>,
) -> Result<Vec<SocketAddr>, BoxError> {
    let found = resolve(url).await?;
    if may_be_private(url, server).await {
        return Ok(found);
    }
    let public: Vec<_> = found.into_iter().filter(|address| is_public(address.ip())).collect();
    match public.is_empty() {
        true => Err(WebUrlError::Private(shortened(url.as_str())).into()),
        false => Ok(public),
    }
}

async fn may_be_private(url: &Url, server: Option<&Url>) -> bool {
    let Some(server) = server else { return true };
    // A server that cannot be resolved counts as public.
    url.host() == server.host()
        || resolve(server)
            .await
            .is_ok_and(|found| found.iter().any(|address| !is_public(address.ip())))
}

async fn resolve(url: &Url) -> io::Result<Vec<SocketAddr>> {
    let port = url.port_or_known_default().unwrap_or(443);
    match url.host() {
        Some(Host::Domain(name)) => Ok(tokio::net::lookup_host((name, port)).await?.collect()),
        Some(Host::Ipv4(address)) => Ok(vec![(address, port).into()]),
        Some(Host::Ipv6(address)) => Ok(vec![(address, port).into()]),
        None => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    }
}

/// Whether an address is reachable on the Internet (IANA special-purpose address registries).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && (18..20).contains(&b));
    !(is_special || address.is_private() || address.is_loopback() || address.is_link_local())
}

/// Only 2000::/3 is assigned to the Internet. Addresses that contain another one are as public as that.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d, e, f) {
        // IPv4-mapped, NAT64 and 6to4.
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => v4(g, h),
        (0x2002, ..) => v4(b, c),
        _ => (0x2000..0x4000).contains(&a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for address in ["8.8.8.8", "100.63.0.1", "172.32.0.1", "2606:4700::1", "::ffff:8.8.8.8"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[tokio::test]
    async fn a_public_server_leads_to_public_addresses_only() {
        let url = |text: &str| Url::parse(text).unwrap();
        let public = url("https://8.8.8.8/mcp");
        for target in ["https://10.0.0.1/x", "https://[::1]/x", "https://localhost/x"] {
            let refused = addresses(&url(target), Some(&public)).await.unwrap_err();
            assert!(refused.is::<WebUrlError>(), "{target}: {refused}");
            // The application, or a server in a private network, may name it.
            assert!(addresses(&url(target), None).await.is_ok());
            assert!(addresses(&url(target), Some(&url("https://192.168.0.1/mcp"))).await.is_ok());
        }
        assert!(addresses(&url("https://1.1.1.1/x"), Some(&public)).await.is_ok());
    }
}
