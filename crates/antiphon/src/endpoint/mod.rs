//! The grammar of endpoints, for listening and for calling.

mod convert;
mod parse;
mod parts;

use std::fmt;
use std::io;
use std::path::PathBuf;

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
/// Without one, a listener detects the framing of the client, and a client uses that of its
/// [`Dialect`](crate::Dialect), or `line`.
///
/// [`Client::connect`](crate::Client::connect) and [`Server::bind`](crate::Server::bind) take an
/// endpoint as text or as a value.
///
/// ```
/// use antiphon::Endpoint;
///
/// let editor: Endpoint = "exec+header:clangd --background-index".parse()?;
/// assert_eq!(editor.to_string(), "exec+header:clangd --background-index");
///
/// let service: Endpoint = "https://example.org/rpc".parse()?;
/// assert_eq!(service.as_ws().to_string(), "wss://example.org/rpc");
/// assert_eq!((service.port(), service.path()), (Some(443), Some("/rpc")));
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

/// The schemes, without TLS and with TLS.
pub(crate) const HTTP: [&str; 2] = ["http", "https"];
pub(crate) const WS: [&str; 2] = ["ws", "wss"];
pub(crate) const TCP: [&str; 2] = ["tcp", "tls"];

/// The default port: of `https://` and `wss://` if `secure`, otherwise of `http://` and `ws://`.
pub(crate) fn web_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

impl Authority {
    /// `host:port`, with this port by default.
    #[cfg(feature = "tcp")]
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
            ("memory+line:a", "remove the `+`"),
            ("tcp:h:1", "as in tcp://"),
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
