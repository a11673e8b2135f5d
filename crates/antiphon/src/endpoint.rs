//! The grammar of endpoints, for listening and for calling.

use std::fmt;
use std::io;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use antiphon_core::framing::Framing;

/// The address of a JSON-RPC peer.
///
/// | endpoint | listen | call |
/// |---|---|---|
/// | `http://host:port/path`, `https://` | HTTP/1.1 and HTTP/2, and WebSocket upgrades | yes |
/// | `ws://host:port/path`, `wss://` | WebSocket only | yes |
/// | `tcp://host:port`, `tls://` | raw stream | yes |
/// | `unix:/path` | raw stream | yes |
/// | `stdio:` | this process's stdin and stdout | no |
/// | `exec:command args` | no | a child process |
/// | `memory:name` | in-process | yes |
///
/// Raw streams take a framing: `tcp+line://`, `unix+header:`, `stdio+header:`, `exec+header:clangd`.
/// Without one, a listener detects the framing of the client, and a client uses `line`.
///
/// ```
/// use antiphon::Endpoint;
///
/// let editor: Endpoint = "exec+header:clangd --background-index".parse()?;
/// assert_eq!(editor.to_string(), "exec+header:clangd --background-index");
/// # Ok::<(), antiphon::EndpointError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// `http://host:port/path`, `https://host:port/path`
    Http {
        /// Host and port.
        authority: Authority,
        /// The path; `/` by default.
        path: String,
        /// Whether the connection uses TLS.
        secure: bool,
    },
    /// `ws://host:port/path`, `wss://host:port/path`
    Ws {
        /// Host and port.
        authority: Authority,
        /// The path; `/` by default.
        path: String,
        /// Whether the connection uses TLS.
        secure: bool,
    },
    /// `tcp://host:port`, `tls://host:port`
    Tcp {
        /// Host and port.
        authority: Authority,
        /// The framing, if the endpoint names one.
        framing: Option<Framing>,
        /// Whether the connection uses TLS.
        secure: bool,
    },
    /// `unix:/path`
    Unix {
        /// The path of the socket file.
        path: PathBuf,
        /// The framing, if the endpoint names one.
        framing: Option<Framing>,
    },
    /// `stdio:`
    Stdio {
        /// The framing, if the endpoint names one.
        framing: Option<Framing>,
    },
    /// `exec:command args`
    Exec {
        /// The program and its arguments.
        command: Vec<String>,
        /// The framing, if the endpoint names one.
        framing: Option<Framing>,
    },
    /// `memory:name`
    Memory {
        /// The name, which may be empty.
        name: String,
    },
}

/// A host and an optional port.
///
/// ```
/// use antiphon::{Authority, Endpoint};
///
/// let authority = Authority { host: "::1".to_owned(), port: Some(4000) };
/// let endpoint = Endpoint::Tcp { authority, framing: None, secure: false };
/// assert_eq!(endpoint.to_string(), "tcp://[::1]:4000");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// A name or an IP address; an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
}

/// The error of a text that is not an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an endpoint: {reason}")]
pub struct EndpointError {
    text: String,
    reason: String,
}

const FORMS: &str = "use http://host:port/path, ws://host:port/path, tcp://host:port, unix:/path, \
                     stdio:, exec:command or memory:name; with TLS, https://, wss:// or tls://";

/// The schemes, without TLS and with TLS.
pub(crate) const HTTP: [&str; 2] = ["http", "https"];
pub(crate) const WS: [&str; 2] = ["ws", "wss"];
pub(crate) const TCP: [&str; 2] = ["tcp", "tls"];

/// The default port: of `https://` and `wss://` if `secure`, otherwise of `http://` and `ws://`.
pub(crate) fn web_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

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
}

impl Endpoint {
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

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        parse(text).map_err(|reason| EndpointError { text: text.to_owned(), reason })
    }
}

fn parse(text: &str) -> Result<Endpoint, String> {
    let (scheme, rest) = text.split_once(':').ok_or_else(|| FORMS.to_owned())?;
    let (scheme, framing) = match scheme.split_once('+') {
        None => (scheme, None),
        Some((scheme, framing)) => {
            (scheme, Some(framing.parse::<Framing>().map_err(|error| error.to_string())?))
        }
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" | "https" | "wss" if framing.is_some() => {
            Err(format!("{scheme} has its own framing; remove the `+` and the framing"))
        }
        web @ ("http" | "https") => {
            let ((authority, path), secure) = (location(rest)?, web == "https");
            Ok(Endpoint::Http { authority, path, secure })
        }
        web @ ("ws" | "wss") => {
            let ((authority, path), secure) = (location(rest)?, web == "wss");
            Ok(Endpoint::Ws { authority, path, secure })
        }
        raw @ ("tcp" | "tls") => {
            let authority = Authority::parse(slashes(rest)?.trim_end_matches('/'))?;
            match authority.port {
                None => Err(format!("the port is missing, as in {raw}://127.0.0.1:4000")),
                Some(_) => Ok(Endpoint::Tcp { authority, framing, secure: raw == "tls" }),
            }
        }
        "unix" => match rest.strip_prefix("//").unwrap_or(rest) {
            "" => Err("the path is missing, as in unix:/run/service.sock".to_owned()),
            path => Ok(Endpoint::Unix { path: path.into(), framing }),
        },
        "stdio" if rest.is_empty() => Ok(Endpoint::Stdio { framing }),
        "stdio" => Err("stdio: takes no address; remove the text after it".to_owned()),
        "exec" => match shell_words::split(rest) {
            Err(error) => Err(error.to_string()),
            Ok(command) if command.is_empty() => {
                Err("the command is missing, as in exec:my-server --stdio".to_owned())
            }
            Ok(command) => Ok(Endpoint::Exec { command, framing }),
        },
        "memory" if framing.is_some() => Err("memory: has no framing".to_owned()),
        "memory" => Ok(Endpoint::Memory { name: rest.to_owned() }),
        _ => Err(FORMS.to_owned()),
    }
}

fn slashes(rest: &str) -> Result<&str, String> {
    rest.strip_prefix("//").ok_or_else(|| "`//` must follow the scheme".to_owned())
}

fn location(rest: &str) -> Result<(Authority, String), String> {
    let rest = slashes(rest)?;
    if rest.contains('#') {
        return Err("a fragment (`#`) is never sent; remove it".to_owned());
    }
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    if authority.contains('@') {
        return Err("an endpoint must not contain credentials; send a header instead".to_owned());
    }
    let path = match path {
        "" => "/".to_owned(),
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_owned(),
    };
    http::uri::PathAndQuery::from_str(&path).map_err(|error| format!("invalid path: {error}"))?;
    Ok((Authority::parse(authority)?, path))
}

impl Authority {
    fn parse(text: &str) -> Result<Self, String> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) =
                    rest.split_once(']').ok_or("`]` is missing after an IPv6 address")?;
                let port = rest.strip_prefix(':');
                if port.is_none() && !rest.is_empty() {
                    return Err("`:port` must follow `]`".to_owned());
                }
                // A zone id may follow the address.
                if host.split('%').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_err()) {
                    return Err(format!("`{host}` in brackets is not an IPv6 address"));
                }
                (host, port)
            }
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err("an IPv6 address needs brackets, as in [::1]:4000".to_owned());
                }
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        if host.is_empty() {
            return Err("the host is missing, as in 127.0.0.1".to_owned());
        }
        if host.contains(|c: char| c.is_whitespace() || c.is_control() || "[]/?#@".contains(c)) {
            return Err(format!("`{host}` is not a valid host"));
        }
        let port = port.map(|port| {
            // Digits only: `u16::from_str` would also accept a sign.
            let digits = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
            let number = digits.and_then(|digits| digits.parse().ok());
            number.ok_or_else(|| {
                format!("`{port}` is not a valid port; use a number from 0 to 65535")
            })
        });
        Ok(Self { host: host.to_owned(), port: port.transpose()? })
    }

    /// `host:port`, with this port by default.
    pub(crate) fn with_default_port(&self, port: u16) -> String {
        let port = self.port.unwrap_or(port);
        Self { host: self.host.clone(), port: Some(port) }.to_string()
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = |framing: &Option<Framing>| {
            framing.map(|framing| format!("+{framing}")).unwrap_or_default()
        };
        let tidy = |path: &str| if path == "/" { String::new() } else { path.to_owned() };
        match self {
            Self::Http { authority, path, secure } => {
                write!(f, "{}://{authority}{}", HTTP[usize::from(*secure)], tidy(path))
            }
            Self::Ws { authority, path, secure } => {
                write!(f, "{}://{authority}{}", WS[usize::from(*secure)], tidy(path))
            }
            Self::Tcp { authority, framing, secure } => {
                write!(f, "{}{}://{authority}", TCP[usize::from(*secure)], suffix(framing))
            }
            Self::Unix { path, framing } => {
                let path = path.display().to_string();
                // A path that starts with `//` gets two more slashes. Otherwise its own would be parsed
                // as those of a URL.
                let slashes = if path.starts_with("//") { "//" } else { "" };
                write!(f, "unix{}:{slashes}{path}", suffix(framing))
            }
            Self::Stdio { framing } => write!(f, "stdio{}:", suffix(framing)),
            Self::Exec { command, framing } => {
                write!(f, "exec{}:{}", suffix(framing), shell_words::join(command))
            }
            Self::Memory { name } => write!(f, "memory:{name}"),
        }
    }
}

/// The error for an endpoint whose feature is off.
pub(crate) fn without_feature(endpoint: &Endpoint) -> io::Error {
    let text = endpoint.to_string();
    let scheme = text.split([':', '+']).next().unwrap_or_default();
    let feature = match scheme {
        "exec" => "child",
        _ if endpoint.is_secure() && !cfg!(feature = "tls") => "tls",
        "https" => "http",
        "wss" => "ws",
        other => other,
    };
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!("this build does not support {scheme}; enable the feature `{feature}` of antiphon"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_parses_and_formats() {
        for text in [
            "http://127.0.0.1:8650",
            "http://[::1]:0/rpc",
            "http://example.org/a?b=c",
            "ws://localhost:1/x",
            "https://example.org/a?b=c",
            "wss://[::1]:0/rpc",
            "tls://127.0.0.1:4000",
            "tls+header://h:1",
            "tcp://127.0.0.1:4000",
            "tcp+header://[::1]:4000",
            "tcp+values://h:1",
            "tcp://[fe80::1%eth0]:1",
            "unix:/run/a.sock",
            "unix+line:relative.sock",
            "unix:////run/a.sock",
            "stdio:",
            "stdio+header:",
            "exec:server --stdio",
            "exec+header:clangd",
            "exec:sh -c 'a b'",
            "memory:",
            "memory:one",
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        assert_eq!("unix:///run/a".parse::<Endpoint>().unwrap().to_string(), "unix:/run/a");
        assert_eq!("HTTP://h:1".parse::<Endpoint>().unwrap().to_string(), "http://h:1");
        assert_eq!("http://h/".parse::<Endpoint>().unwrap().to_string(), "http://h");
        assert!("WSS://h".parse::<Endpoint>().unwrap().is_secure());
        assert!(!"unix:/run/tls".parse::<Endpoint>().unwrap().is_secure());
    }

    #[test]
    fn an_error_names_the_value_and_the_remedy() {
        for (text, remedy) in [
            ("localhost:8650", "use http://host"),
            ("", "use http://host"),
            ("ftp://x", "use http://host"),
            ("http:/x", "`//` must follow"),
            ("http://", "the host is missing"),
            ("http://:80", "the host is missing"),
            ("http://h:99999", "`99999` is not a valid port"),
            ("tcp://h:+80", "`+80` is not a valid port"),
            ("tcp://a/b:1", "`a/b` is not a valid host"),
            ("http://h]:1", "`h]` is not a valid host"),
            ("http://[[::1]:1", "is not an IPv6 address"),
            ("http://[h]:1", "is not an IPv6 address"),
            ("http://h:", "`` is not a valid port"),
            ("http://user:pw@h:1", "send a header"),
            ("http+line://h", "remove the `+`"),
            ("tcp://h", "the port is missing"),
            ("tcp://::1:4000", "needs brackets"),
            ("tcp+tabs://h:1", "choose line, header or values"),
            ("unix:", "the path is missing"),
            ("stdio:x", "stdio: takes no address"),
            ("exec:", "the command is missing"),
            ("exec:'a", "missing closing quote"),
            ("https+line://h", "remove the `+`"),
            ("tls://h", "the port is missing, as in tls://"),
            ("ssl://h:1", "https://"),
            ("http://h/\u{7}", "invalid path"),
            ("http://h:1/rpc#x", "remove it"),
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains(remedy) && error.contains(text), "{text}: {error}");
        }
    }
}
