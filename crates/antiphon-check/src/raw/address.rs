//! The address of a peer, as the command line writes it: `http://host:port/path`, `unix:/path`.
//!
//! The grammar is that of the library's endpoints, without `stdio:` and `memory:`, which cannot be
//! called from another process. This parser is independent of the library's. A test compares the two.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::CheckError;

/// The address of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    text: String,
    pub(crate) route: AddressRoute,
    /// The protocol on the connection.
    pub protocol: AddressProtocol,
    pub(crate) is_secure: bool,
}

/// The way to the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AddressRoute {
    Tcp {
        host: String,
        port: u16,
    },
    Unix(PathBuf),
    /// The program and its arguments.
    Exec(Vec<String>),
}

/// The protocol on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressProtocol {
    /// HTTP/1.1: one POST per message.
    Http {
        /// The path with its query, `/` if the address has none.
        path: String,
        /// The value of the `Host` header.
        host: String,
    },
    /// WebSocket: one text frame per message.
    Ws {
        /// The path with its query, `/` if the address has none.
        path: String,
        /// The value of the `Host` header.
        host: String,
    },
    /// A stream of bytes with this framing.
    Stream(StreamFraming),
}

/// The framing of messages on a stream of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamFraming {
    /// One message per line.
    Line,
    /// A `Content-Length` block before each message.
    Header,
    /// JSON values that follow each other.
    Values,
}

impl Address {
    /// Reports whether each connection is a process of its own: `exec:`.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self.route, AddressRoute::Exec(_))
    }
}

impl FromStr for Address {
    type Err = CheckError;

    fn from_str(text: &str) -> Result<Self, CheckError> {
        parse(text)
            .map_err(|reason| CheckError::usage(format!("`{text}` is not an endpoint: {reason}")))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse(text: &str) -> Result<Address, String> {
    let (scheme, rest) = text.split_once(':').ok_or("a scheme is missing, as in http://host")?;
    let (scheme, framing) = match scheme.split_once('+') {
        Some((scheme, framing)) => (scheme, Some(framing_of(framing)?)),
        None => (scheme, None),
    };
    let scheme = scheme.to_ascii_lowercase();
    let is_secure = matches!(&*scheme, "https" | "wss" | "tls");
    let stream = AddressProtocol::Stream(framing.unwrap_or(StreamFraming::Line));
    let (route, protocol) = match &*scheme {
        "http" | "https" | "ws" | "wss" if framing.is_some() => {
            return Err(format!("{scheme} takes no framing"));
        }
        "http" | "https" => {
            let (route, path, host) = web(rest, is_secure)?;
            (route, AddressProtocol::Http { path, host })
        }
        "ws" | "wss" => {
            let (route, path, host) = web(rest, is_secure)?;
            (route, AddressProtocol::Ws { path, host })
        }
        "tcp" | "tls" => {
            let (host, port) = host_and_port(after_slashes(rest)?.trim_end_matches('/'))?;
            let port = port.ok_or_else(|| format!("a port is missing, as in {scheme}://host:1"))?;
            (AddressRoute::Tcp { host, port }, stream)
        }
        "unix" => match rest.strip_prefix("//").unwrap_or(rest) {
            "" => return Err("a path is missing, as in unix:/run/service.sock".to_owned()),
            path => (AddressRoute::Unix(path.into()), stream),
        },
        "exec" => match shell_words::split(rest).map_err(|error| error.to_string())? {
            command if command.is_empty() => {
                return Err("a command is missing, as in exec:my-server".to_owned());
            }
            command => (AddressRoute::Exec(command), stream),
        },
        _ => {
            let forms = "use http://, ws://, tcp://, https://, wss://, tls://, unix: or exec:";
            return Err(forms.to_owned());
        }
    };
    Ok(Address { text: text.to_owned(), route, protocol, is_secure })
}

fn framing_of(name: &str) -> Result<StreamFraming, String> {
    match name {
        "line" => Ok(StreamFraming::Line),
        "header" => Ok(StreamFraming::Header),
        "values" => Ok(StreamFraming::Values),
        _ => Err(format!("`{name}` is not a framing; choose line, header or values")),
    }
}

fn after_slashes(rest: &str) -> Result<&str, String> {
    rest.strip_prefix("//").ok_or_else(|| "`//` must follow the scheme".to_owned())
}

/// The route, the path and the `Host` of a web address.
fn web(rest: &str, is_secure: bool) -> Result<(AddressRoute, String, String), String> {
    let rest = after_slashes(rest)?;
    if rest.contains('#') {
        return Err("a fragment is never sent; remove the `#`".to_owned());
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    path.parse::<http::uri::PathAndQuery>().map_err(|error| format!("its path: {error}"))?;
    let (host, port) = host_and_port(authority)?;
    let port = port.unwrap_or(if is_secure { 443 } else { 80 });
    let header = match (host.contains(':'), authority.rsplit_once(']')) {
        (true, Some((_, end))) => format!("[{host}]{end}"),
        _ => authority.to_owned(),
    };
    Ok((AddressRoute::Tcp { host, port }, path, header))
}

/// Splits `host:port`; an IPv6 address stands in brackets.
fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, end) = rest.split_once(']').ok_or("`]` is missing")?;
            let ip = host.split('%').next().unwrap_or_default();
            if ip.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!("`{host}` in brackets is not an IPv6 address"));
            }
            match end.strip_prefix(':') {
                None if !end.is_empty() => return Err("`:port` must follow `]`".to_owned()),
                port => (host, port),
            }
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_invalid = |c: char| c.is_whitespace() || c.is_control() || "[]/?#@".contains(c);
    if host.is_empty() || host.contains(is_invalid) {
        return Err(format!("`{host}` is not a host"));
    }
    let number = |port: &str| {
        let is_digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        port.parse().ok().filter(|_| is_digits)
    };
    match port {
        None => Ok((host.to_owned(), None)),
        Some(port) => match number(port) {
            Some(number) => Ok((host.to_owned(), Some(number))),
            None => Err(format!("`{port}` is not a port from 0 to 65535")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap_or_else(|error: CheckError| panic!("{error}"))
    }

    #[test]
    fn a_web_address_has_a_host_header_and_a_path() {
        for (text, host, path) in [
            ("http://h", "h", "/"),
            ("http://h:1/a?b", "h:1", "/a?b"),
            ("https://[::1]:2?x", "[::1]:2", "/?x"),
            ("HTTP://[::1]", "[::1]", "/"),
        ] {
            let expected = AddressProtocol::Http { path: path.into(), host: host.into() };
            assert_eq!(address(text).protocol, expected, "{text}");
        }
        let secure = AddressRoute::Tcp { host: "h".into(), port: 443 };
        assert_eq!(address("wss://h").route, secure);
    }

    /// The independent parsers must read every address alike, or `check` would test another server
    /// than the one that the command line names.
    #[test]
    fn it_agrees_with_the_library() {
        use antiphon::Endpoint;
        for text in [
            "http://127.0.0.1:8650",
            "http://[::1]:0/rpc",
            "http://example.org/a?b=c",
            "ws://localhost:1/x",
            "https://example.org/a?b=c",
            "wss://[::1]:0/rpc",
            "tls://127.0.0.1:4000",
            "tls+header://h:1",
            "tcp+header://[::1]:4000",
            "tcp+values://h:1/",
            "tcp://[fe80::1%eth0]:1",
            "unix:/run/a.sock",
            "unix:////run/a.sock",
            "unix+line:relative.sock",
            "exec:server --stdio",
            "exec+header:sh -c 'a b'",
            "localhost:8650",
            "",
            "ftp://x",
            "http:/x",
            "http://",
            "http://:80",
            "http://h:99999",
            "tcp://h:+80",
            "tcp://a/b:1",
            "http://h]:1",
            "http://[[::1]:1",
            "http://[h]:1",
            "http://h:",
            "http://user:pw@h:1",
            "http+line://h",
            "tcp://h",
            "tcp://::1:4000",
            "tcp+tabs://h:1",
            "unix:",
            "exec:",
            "exec:'a",
            "http://h/\u{7}",
            "http://h:1/rpc#x",
        ] {
            match (text.parse::<Address>(), text.parse::<Endpoint>()) {
                (Err(_), Err(_)) => {}
                (Ok(own), Ok(theirs)) => assert_eq!(own, same(&theirs, text), "{text}"),
                (own, theirs) => panic!("{text}: {own:?} and {theirs:?}"),
            }
        }
    }

    /// The library's reading of an address, in the words of this module.
    fn same(endpoint: &antiphon::Endpoint, text: &str) -> Address {
        use antiphon::Endpoint;
        let framing = |framing: &Option<antiphon::Framing>| {
            AddressProtocol::Stream(match framing {
                Some(antiphon::Framing::Header) => StreamFraming::Header,
                Some(antiphon::Framing::Values) => StreamFraming::Values,
                _ => StreamFraming::Line,
            })
        };
        let is_secure = endpoint.is_secure();
        let port = if is_secure { 443 } else { 80 };
        let tcp = |authority: &antiphon::Authority| AddressRoute::Tcp {
            host: authority.host.clone(),
            port: authority.port.unwrap_or(port),
        };
        let (route, protocol) = match endpoint {
            Endpoint::Http { authority, path, .. } => {
                let (path, host) = (path.clone(), authority.to_string());
                (tcp(authority), AddressProtocol::Http { path, host })
            }
            Endpoint::Ws { authority, path, .. } => {
                let (path, host) = (path.clone(), authority.to_string());
                (tcp(authority), AddressProtocol::Ws { path, host })
            }
            Endpoint::Tcp { authority, framing: named, .. } => (tcp(authority), framing(named)),
            Endpoint::Unix { path, framing: named } => {
                (AddressRoute::Unix(path.clone()), framing(named))
            }
            Endpoint::Exec { command, framing: named } => {
                (AddressRoute::Exec(command.clone()), framing(named))
            }
            other => panic!("{other} cannot be called"),
        };
        Address { text: text.to_owned(), route, protocol, is_secure }
    }
}
