//! Parses the text of an endpoint. Each error names the fault and an example.

use std::net::Ipv6Addr;
use std::str::FromStr;

use antiphon_core::framing::Framing;

use super::{Authority, Endpoint, EndpointError};

const FORMS: &str = "use http://host:port/path, ws://host:port/path, tcp://host:port, unix:/path, \
                     stdio:, exec:command or memory:name; with TLS, https://, wss:// or tls://";

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
            let ((authority, path), secure) = (location(web, rest)?, web == "https");
            Ok(Endpoint::Http { authority, path, secure })
        }
        web @ ("ws" | "wss") => {
            let ((authority, path), secure) = (location(web, rest)?, web == "wss");
            Ok(Endpoint::Ws { authority, path, secure })
        }
        raw @ ("tcp" | "tls") => {
            let authority = Authority::parse(slashes(raw, rest)?.trim_end_matches('/'))?;
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
            Err(error) => {
                Err(format!("invalid command: {error}; quote as in exec:my-server 'two words'"))
            }
            Ok(command) if command.is_empty() => {
                Err("the command is missing, as in exec:my-server --stdio".to_owned())
            }
            Ok(command) => Ok(Endpoint::Exec { command, framing }),
        },
        "memory" if framing.is_some() => {
            Err("memory: has no framing; remove the `+` and the framing".to_owned())
        }
        "memory" => Ok(Endpoint::Memory { name: rest.to_owned() }),
        _ => Err(FORMS.to_owned()),
    }
}

fn slashes<'a>(scheme: &str, rest: &'a str) -> Result<&'a str, String> {
    let missing = || format!("`//` must follow the scheme, as in {scheme}://127.0.0.1:4000");
    rest.strip_prefix("//").ok_or_else(missing)
}

fn location(scheme: &str, rest: &str) -> Result<(Authority, String), String> {
    let rest = slashes(scheme, rest)?;
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    if authority.contains('@') {
        return Err("an endpoint must not contain credentials; send a header instead".to_owned());
    }
    let path = match path {
        "" => "/".to_owned(),
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_owned(),
    };
    check_path(&path)?;
    Ok((Authority::parse(authority)?, path))
}

/// Checks the path and query of a web endpoint.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    if path.contains('#') {
        return Err("a fragment (`#`) is never sent; remove it".to_owned());
    }
    let checked = http::uri::PathAndQuery::from_str(path);
    checked.map(drop).map_err(|error| format!("invalid path: {error}"))
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
}
