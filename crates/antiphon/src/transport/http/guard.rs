//! The check of Host and Origin, and CORS.
//!
//! Every web page that a user opens can reach a server on a loopback address: by DNS rebinding under a
//! foreign Host, and by WebSocket and simple requests from a foreign Origin. Both are refused before
//! the body is read. CORS is off unless origins are allowed.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, Uri};

use super::refusal::HttpRefusal;
use super::rules::RuleHeaders;
use super::server_service::connection_guard;
use crate::log_excerpt::log_excerpt;

/// The accepted `Host` and `Origin` headers. A request with another one gets status 403, before its body
/// is read.
///
/// ```
/// use antiphon::transport::http::Guard;
///
/// let guard =
///     Guard::new().allowed_hosts_only().allow_host("rpc.example").allow_origin("https://app.example");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Guard {
    served: ServedHosts,
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// The accepted Hosts, besides those that are allowed by name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum ServedHosts {
    #[default]
    All,
    Loopback,
    None,
}

impl Guard {
    /// Accepts every Host, and an Origin only if it equals the Host.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts only `localhost`, loopback addresses, and the Hosts that [`allow_host`](Self::allow_host)
    /// names. This is the default of a [`Server`](crate::Server) on a loopback address.
    #[must_use]
    pub fn loopback_only(mut self) -> Self {
        self.served = ServedHosts::Loopback;
        self
    }

    /// Accepts only the Hosts that [`allow_host`](Self::allow_host) names.
    #[must_use]
    pub fn allowed_hosts_only(mut self) -> Self {
        self.served = ServedHosts::None;
        self
    }

    /// Accepts this Host. Has no effect unless Hosts are restricted: see
    /// [`loopback_only`](Self::loopback_only) and [`allowed_hosts_only`](Self::allowed_hosts_only).
    ///
    /// A name without a port, such as `rpc.example`, is accepted with every port.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Accepts pages of this origin, such as `https://app.example`, and sends CORS headers for them. `*`
    /// accepts every origin.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Returns the guard of the server that received a request, from the extensions of the request. Use it in a
    /// layer of [`Server::http_layer`](crate::Server::http_layer) that responds by itself: the server checks Host and
    /// Origin inside its layers. `None` for a request of another HTTP server.
    pub fn of_request(extensions: &Extensions) -> Option<&Self> {
        connection_guard(extensions)
    }

    /// Checks the Host and Origin of a request, as the server does.
    ///
    /// # Errors
    /// Fails if one of them is not accepted.
    pub fn check_head(&self, request: &Parts) -> Result<(), HttpRefusal> {
        self.check(&request.uri, &RuleHeaders::of(&request.headers))
    }

    /// Accepts only loopback Hosts, unless the application has restricted Hosts itself.
    pub(super) fn loopback_by_default(self) -> Self {
        if self.served == ServedHosts::All { self.loopback_only() } else { self }
    }

    /// Checks the Host and Origin of a request.
    pub(super) fn check(&self, uri: &Uri, headers: &RuleHeaders<'_>) -> Result<(), HttpRefusal> {
        let host = || host_of(uri, headers);
        if self.names_hosts() && !host().is_some_and(|host| self.serves_host(host)) {
            return Err(host_refused(host()));
        }
        match headers.origin {
            Some(origin) if !self.serves_origin(origin, host()) => Err(origin_refused(origin)),
            _ => Ok(()),
        }
    }

    /// Whether a request must name its Host.
    pub(super) fn names_hosts(&self) -> bool {
        self.served != ServedHosts::All
    }

    /// Whether a request for this Host is served, if it has no Origin.
    pub(super) fn serves(&self, host: &[u8]) -> bool {
        !self.names_hosts() || std::str::from_utf8(host).is_ok_and(|host| self.serves_host(host))
    }

    fn serves_host(&self, host: &str) -> bool {
        let name = without_port(host);
        let is_served = self.served == ServedHosts::Loopback && is_loopback(name);
        is_served
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name) || known == host)
    }

    fn serves_origin(&self, origin: &HeaderValue, host: Option<&str>) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        let same = origin.split_once("://").is_some_and(|(_, at)| Some(at) == host);
        same || self.allows_origin(origin)
    }

    fn allows_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(origin))
    }

    /// The headers that allow a page of an allowed origin to read the response.
    pub(super) fn cors(&self, request: &HeaderMap) -> Option<HeaderMap> {
        let origin = self.allowed_origin(request)?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(VARY, HeaderValue::from_static("origin"));
        Some(headers)
    }

    /// The headers of the response to a preflight, if its origin is allowed.
    pub(super) fn preflight(&self, request: &HeaderMap) -> Option<HeaderMap> {
        let mut headers = self.cors(request)?;
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
        headers.insert(
            ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("content-type, authorization"),
        );
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        Some(headers)
    }

    fn allowed_origin<'a>(&self, request: &'a HeaderMap) -> Option<&'a HeaderValue> {
        if self.origins.is_empty() {
            return None;
        }
        let origin = request.get(ORIGIN)?;
        origin.to_str().is_ok_and(|origin| self.allows_origin(origin)).then_some(origin)
    }
}

#[cold]
fn host_refused(host: Option<&str>) -> HttpRefusal {
    let reason = match host {
        Some(host) => format!(
            "the Host `{}` is not accepted; the server can accept it with `Guard::allow_host`",
            log_excerpt(host)
        ),
        None => {
            "the request names no Host in ASCII; send a Host that the server accepts".to_owned()
        }
    };
    HttpRefusal::Forbidden(reason.into())
}

#[cold]
fn origin_refused(origin: &HeaderValue) -> HttpRefusal {
    let origin = log_excerpt(&String::from_utf8_lossy(origin.as_bytes()));
    let reason = format!(
        "the Origin `{origin}` is not accepted; the server can accept it with `Guard::allow_origin`"
    );
    HttpRefusal::Forbidden(reason.into())
}

fn host_of<'a>(uri: &'a Uri, headers: &RuleHeaders<'a>) -> Option<&'a str> {
    // HTTP/2 carries it in the address; a Host header that contradicts it changes nothing.
    let authority = uri.authority().map(http::uri::Authority::as_str);
    authority.or_else(|| headers.host?.to_str().ok())
}

fn is_loopback(host: &str) -> bool {
    // The two common spellings first; parsing finds the others.
    host == "127.0.0.1"
        || host.eq_ignore_ascii_case("localhost")
        || host
            .trim_matches(['[', ']'])
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.to_canonical().is_loopback())
}

fn without_port(host: &str) -> &str {
    // A port is short: a search through its bytes is faster than one that compares words.
    let port = host.bytes().rev().take_while(u8::is_ascii_digit).count();
    match host[..host.len() - port].strip_suffix(':') {
        Some(name) if name.ends_with(']') || !name.bytes().any(|byte| byte == b':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use http::header::HOST;

    use super::*;

    fn check(guard: &Guard, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        guard.check(&Uri::from_static("/"), &RuleHeaders::of(&headers)).is_ok()
    }

    #[test]
    fn loopback_serves_loopback_names() {
        let guard = Guard::new().loopback_only().allow_host("box.lan");
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:8650", "127.9.9.9", "[::1]:1", "box.lan:7"]
        {
            assert!(check(&guard, host, None), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example:80", "10.0.0.1", "[::2]", "", "127.0.0.1.evil"]
        {
            assert!(!check(&guard, host, None), "{host}");
        }
    }

    #[test]
    fn only_the_allowed_hosts_are_served() {
        let guard = Guard::new().allowed_hosts_only().allow_host("rpc.example");
        for guard in [guard.clone(), guard.loopback_by_default()] {
            assert!(check(&guard, "rpc.example:8650", None));
            assert!(!check(&guard, "localhost", None));
            assert!(!check(&guard, "evil.example", None));
        }
    }

    #[test]
    fn a_refusal_names_the_header_shortened_and_escaped() {
        let refusal = |host: &str, origin: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            headers.insert(ORIGIN, HeaderValue::from_bytes(origin).unwrap());
            let guard = Guard::new().allowed_hosts_only().allow_host("h");
            let refused = guard.check(&Uri::from_static("/"), &RuleHeaders::of(&headers));
            refused.unwrap_err().reason().into_owned()
        };
        assert!(refusal("evil.example", b"null").starts_with("the Host `evil.example` is not"));
        assert!(refusal("h", b"http://evil").starts_with("the Origin `http://evil` is not"));
        assert!(refusal("h", b"a\tb\xff").contains(r"`a\tb"));
        assert!(refusal(&"x".repeat(10_000), b"null").len() < 200);
    }

    #[test]
    fn a_page_is_served_its_own_origin() {
        let guard = Guard::new();
        assert!(check(&guard, "h:1", None));
        assert!(check(&guard, "h:1", Some("http://h:1")));
        for origin in ["http://h:2", "http://evil.example", "null", "h:1"] {
            assert!(!check(&guard, "h:1", Some(origin)), "{origin}");
        }
        assert!(check(
            &guard.clone().allow_origin("https://app.example"),
            "h",
            Some("https://app.example")
        ));
        assert!(check(&guard.allow_origin("*"), "h", Some("null")));
    }
}
