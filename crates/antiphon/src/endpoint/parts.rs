//! The parts of an endpoint, and endpoints that differ from another in one part.

use std::net::SocketAddr;

use super::parse::check_path;
use super::{Authority, Endpoint, EndpointError, web_port};

impl Endpoint {
    /// Whether the connection uses TLS.
    pub fn is_secure(&self) -> bool {
        matches!(
            self,
            Self::Http { secure: true, .. }
                | Self::Ws { secure: true, .. }
                | Self::Tcp { secure: true, .. }
        )
    }

    /// The host and port of a web or TCP endpoint. Its `Display` is `host:port`.
    pub fn authority(&self) -> Option<&Authority> {
        match self {
            Self::Http { authority, .. }
            | Self::Ws { authority, .. }
            | Self::Tcp { authority, .. } => Some(authority),
            _ => None,
        }
    }

    /// The port of a web or TCP endpoint. A web endpoint without one has the default of its scheme: 80,
    /// or 443 with TLS.
    pub fn port(&self) -> Option<u16> {
        let default = self.path().map(|_| web_port(self.is_secure()));
        self.authority()?.port.or(default)
    }

    /// The path of a web endpoint, with the query if it has one; `/` by default.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Http { path, .. } | Self::Ws { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The WebSocket endpoint at the authority and path of an HTTP endpoint: `ws://` for `http://`,
    /// `wss://` for `https://`. Every other endpoint is returned unchanged.
    ///
    /// ```
    /// # #[cfg(feature = "ws")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use antiphon::{Client, Context, Router, Server};
    /// # let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    /// let server = Server::bind("http://127.0.0.1:0/rpc").await?;
    /// let (http, ws) = (server.endpoint().clone(), server.endpoint().as_ws());
    /// tokio::spawn(server.serve(router));
    /// for endpoint in [http, ws] {
    ///     let client = Client::connect(endpoint).await?;
    ///     assert_eq!(client.call::<String>("ping", ()).await?, "pong");
    /// }
    /// # Ok(()) }
    /// # #[cfg(not(feature = "ws"))]
    /// # fn main() {}
    /// ```
    #[must_use]
    pub fn as_ws(&self) -> Self {
        match self.clone() {
            Self::Http { authority, path, secure } => Self::Ws { authority, path, secure },
            other => other,
        }
    }

    /// The HTTP endpoint at the authority and path of a WebSocket endpoint: `http://` for `ws://`,
    /// `https://` for `wss://`. Every other endpoint is returned unchanged.
    #[must_use]
    pub fn as_http(&self) -> Self {
        match self.clone() {
            Self::Ws { authority, path, secure } => Self::Http { authority, path, secure },
            other => other,
        }
    }

    /// Returns this web endpoint with another path. Fails if the path is not valid, and for an endpoint
    /// that has no path.
    ///
    /// ```
    /// use antiphon::Endpoint;
    ///
    /// let endpoint: Endpoint = "http://127.0.0.1:8650".parse()?;
    /// assert_eq!(endpoint.with_path("/rpc")?.to_string(), "http://127.0.0.1:8650/rpc");
    /// # Ok::<(), antiphon::EndpointError>(())
    /// ```
    pub fn with_path(&self, path: &str) -> Result<Self, EndpointError> {
        let error = |reason: String| EndpointError { text: format!("{self} at {path}"), reason };
        if !path.starts_with('/') {
            return Err(error("the path must start with `/`".to_owned()));
        }
        check_path(path).map_err(error)?;
        let mut endpoint = self.clone();
        match &mut endpoint {
            Self::Http { path: old, .. } | Self::Ws { path: old, .. } => *old = path.to_owned(),
            _ => return Err(error("only http:// and ws:// have a path for requests".to_owned())),
        }
        Ok(endpoint)
    }

    /// The endpoint for error messages. The path of a web endpoint is left out: it may hold a key, and
    /// messages go to logs.
    pub(crate) fn server(&self) -> String {
        let scheme = match self {
            Self::Http { secure: false, .. } => "http",
            Self::Http { .. } => "https",
            Self::Ws { secure: false, .. } => "ws",
            Self::Ws { .. } => "wss",
            other => return other.to_string(),
        };
        self.authority().map_or_else(String::new, |authority| format!("{scheme}://{authority}"))
    }

    /// Returns this endpoint with another authority. An endpoint without an authority is unchanged.
    pub(crate) fn with_authority(&self, authority: Authority) -> Self {
        let mut endpoint = self.clone();
        if let Self::Http { authority: old, .. }
        | Self::Ws { authority: old, .. }
        | Self::Tcp { authority: old, .. } = &mut endpoint
        {
            *old = authority;
        }
        endpoint
    }

    /// Returns this endpoint with the authority of a socket address.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        let (host, port) = (address.ip().to_string(), Some(address.port()));
        self.with_authority(Authority { host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Endpoint {
        text.parse().unwrap()
    }

    #[test]
    fn web_endpoints_change_their_scheme_and_keep_the_rest() {
        for (http, ws) in [
            ("http://h:1/rpc?a=b", "ws://h:1/rpc?a=b"),
            ("https://[::1]/", "wss://[::1]"),
            ("tcp+line://h:1", "tcp+line://h:1"),
            ("memory:one", "memory:one"),
        ] {
            let (http, ws) = (parsed(http), parsed(ws));
            assert_eq!((http.as_ws(), ws.as_http()), (ws.clone(), http.clone()));
            assert_eq!((http.as_http(), ws.as_ws()), (http, ws));
        }
    }

    #[test]
    fn the_parts_of_an_endpoint() {
        for (text, authority, port, path) in [
            ("http://h:1/rpc", Some("h:1"), Some(1), Some("/rpc")),
            ("http://h", Some("h"), Some(80), Some("/")),
            ("wss://[::1]/a?b", Some("[::1]"), Some(443), Some("/a?b")),
            ("tls://h:1", Some("h:1"), Some(1), None),
            ("unix:/run/a.sock", None, None, None),
        ] {
            let endpoint = parsed(text);
            let found = endpoint.authority().map(ToString::to_string);
            assert_eq!(found.as_deref(), authority, "{text}");
            assert_eq!((endpoint.port(), endpoint.path()), (port, path), "{text}");
        }
    }

    #[test]
    fn a_path_is_checked() {
        assert_eq!(parsed("ws://h:1/a").with_path("/b?c").unwrap(), parsed("ws://h:1/b?c"));
        for (endpoint, path, reason) in [
            ("http://h:1", "rpc", "must start with `/`"),
            ("http://h:1", "/\u{7}", "invalid path"),
            ("http://h:1", "/a#b", "remove it"),
            ("unix:/run/a.sock", "/rpc", "only http:// and ws:// have a path"),
        ] {
            let error = parsed(endpoint).with_path(path).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(endpoint), "{error}");
        }
    }

    #[test]
    fn text_and_values_are_endpoints() {
        fn taken(endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>) -> Endpoint {
            endpoint.try_into().map_err(Into::into).unwrap()
        }
        let endpoint = taken("tcp://h:1");
        let text = endpoint.to_string();
        assert_eq!(taken(&text), endpoint);
        assert_eq!(taken(text), endpoint);
        assert_eq!(taken(&endpoint), endpoint);
    }
}
