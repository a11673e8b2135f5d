//! The URLs that authorization may use: `https`, and `http` on the same machine.
//!
//! OAuth 2.1 (section 1.5) requires TLS for every endpoint. Plain HTTP to a loopback address stays on the machine.
//! A remote server that names a loopback URL would make the client call local services, so plain loopback URLs are
//! accepted only from servers that are on a loopback address themselves.

use url::{Host, Url};

/// The reason why a URL is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WebUrlError {
    /// The text is not a URL.
    #[error("invalid URL {0:?}: use an absolute https:// URL")]
    Invalid(String),
    /// The URL does not use TLS.
    #[error("insecure URL {0:?}: use https://, or http:// on a loopback address")]
    Insecure(String),
    /// A remote server named a URL on a loopback address.
    #[error("refused URL {0:?}: a remote server may not refer to a loopback address; use https://")]
    Loopback(String),
    /// A public server named a URL whose host has only private addresses.
    #[error(
        "refused URL {0:?}: a public server may not refer to a private network; \
         allow it with `HttpFetch::private_addresses` if it is right"
    )]
    Private(String),
    /// The URL contains a user name, a password or a fragment.
    #[error("refused URL {0:?}: remove the user name, the password and the fragment")]
    Decorated(String),
}

/// Which URLs a document may name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum UrlRule {
    /// `https`, and `http` on a loopback address.
    Local,
    /// `https` only.
    Remote,
}

impl UrlRule {
    /// The rule for URLs that the server at this address names.
    pub(crate) fn of(server: &Url) -> Self {
        if is_loopback(server) { Self::Local } else { Self::Remote }
    }

    pub(crate) fn parse(self, text: &str) -> Result<Url, WebUrlError> {
        let url = Url::parse(text).map_err(|_| WebUrlError::Invalid(shortened(text)))?;
        self.check(&url)?;
        Ok(url)
    }

    pub(crate) fn check(self, url: &Url) -> Result<(), WebUrlError> {
        let text = || shortened(url.as_str());
        if url.host().is_none() {
            return Err(WebUrlError::Invalid(text()));
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(WebUrlError::Decorated(text()));
        }
        match (url.scheme(), is_loopback(url), self) {
            ("https", ..) | ("http", true, Self::Local) => Ok(()),
            ("http", true, Self::Remote) => Err(WebUrlError::Loopback(text())),
            _ => Err(WebUrlError::Insecure(text())),
        }
    }
}

/// Whether the host of a URL is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Prepares a text of a peer for an error message: cuts it, and replaces characters that control a terminal.
pub(crate) fn shortened(text: &str) -> String {
    const MAX: usize = 200;
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut short: String = text.chars().take(MAX).map(visible).collect();
    if text.chars().nth(MAX).is_some() {
        short.push_str("...");
    }
    short
}

/// Returns the origin of a URL, such as `https://mcp.example:8443`.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Inserts a well-known suffix between the host and the path of a URL (RFC 8414, section 3.1; RFC 9728, section 3.1).
pub(crate) fn well_known(url: &Url, suffix: &str) -> String {
    let path = url.path().trim_end_matches('/');
    format!("{}/.well-known/{suffix}{path}", origin(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tls_and_loopback_urls_are_accepted() {
        for url in
            ["https://a.example/x?y", "http://127.0.0.1:1/x", "http://localhost", "http://[::1]:9/"]
        {
            assert!(UrlRule::Local.parse(url).is_ok(), "{url}");
        }
        for url in [
            "http://a.example",
            "ftp://127.0.0.1",
            "a.example",
            "",
            "https://u:p@a.example",
            "https://a.example/#x",
        ] {
            assert!(UrlRule::Local.parse(url).is_err(), "{url}");
        }
        assert_eq!(
            UrlRule::Remote.parse("http://localhost:8080/x"),
            Err(WebUrlError::Loopback("http://localhost:8080/x".to_owned()))
        );
        // A name that only looks like a loopback address.
        assert!(UrlRule::Local.parse("http://127.0.0.1.evil.example").is_err());
        assert!(UrlRule::Local.parse("http://localhost.evil.example").is_err());
    }

    #[test]
    fn texts_of_peers_cannot_control_a_terminal() {
        assert_eq!(shortened("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(shortened(&"ä".repeat(201)), format!("{}...", "ä".repeat(200)));
    }

    #[test]
    fn well_known_urls_keep_the_path_behind_the_suffix() {
        let at = |url: &str| well_known(&Url::parse(url).unwrap(), "x");
        assert_eq!(at("https://a.example"), "https://a.example/.well-known/x");
        assert_eq!(at("https://a.example:8443/t/1/"), "https://a.example:8443/.well-known/x/t/1");
    }
}
