//! Endpoint arguments. An endpoint that a command cannot use is a usage error.

use antiphon::Endpoint;

const IN_PROCESS: &str = "memory: works only inside one process; use unix:/path instead";

/// Parses an endpoint to connect to.
pub(crate) fn callable(text: &str) -> Result<Endpoint, String> {
    match parse(text)? {
        Endpoint::Stdio { .. } => {
            Err("stdio: is for `antiphon serve`; use exec:command to call a process".to_owned())
        }
        endpoint => Ok(endpoint),
    }
}

/// Parses an endpoint to listen on.
pub(crate) fn servable(text: &str) -> Result<Endpoint, String> {
    match parse(text)? {
        Endpoint::Exec { .. } => {
            Err("exec: is for clients; a server in a child process uses stdio:".to_owned())
        }
        endpoint => Ok(endpoint),
    }
}

fn parse(text: &str) -> Result<Endpoint, String> {
    match text.parse::<Endpoint>().map_err(|error| error.to_string())? {
        Endpoint::Memory { .. } => Err(IN_PROCESS.to_owned()),
        endpoint => Ok(endpoint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_endpoint_is_rejected_with_a_remedy() {
        for (refused, remedy) in [
            (callable("stdio:"), "exec:command"),
            (callable("memory:x"), "unix:/path"),
            (callable("localhost:80"), "http://host"),
            (servable("exec:cat"), "stdio:"),
            (servable("memory:"), "unix:/path"),
        ] {
            assert!(refused.unwrap_err().contains(remedy));
        }
        assert!(callable("exec:cat").is_ok() && servable("stdio:").is_ok());
    }
}
