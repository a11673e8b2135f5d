//! Which endpoints a command can use; wrong ones are refused with the command line.

use antiphon::Endpoint;

const IN_PROCESS: &str =
    "memory: joins peers of one process, and this process has one; use unix:/path";

/// An endpoint to call.
pub(crate) fn callable(text: &str) -> Result<Endpoint, String> {
    match parse(text)? {
        Endpoint::Stdio { .. } => {
            Err("stdio: can only be served; use exec:command to call a process".to_owned())
        }
        endpoint => Ok(endpoint),
    }
}

/// An endpoint to serve on.
pub(crate) fn servable(text: &str) -> Result<Endpoint, String> {
    match parse(text)? {
        Endpoint::Exec { .. } => {
            Err("exec: can only be called; a server in a child process listens on stdio:"
                .to_owned())
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
    fn a_wrong_endpoint_is_refused_with_its_remedy() {
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
