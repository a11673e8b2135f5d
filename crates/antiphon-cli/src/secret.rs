//! Secrets on the command line, given as text or as a file.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::SystemTime;

use antiphon::layer::{Credentials, JwtSecret};
use http::HeaderValue;

use crate::exit::{CommandError, Exit};

/// A secret that is never printed.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("the secret is empty".to_owned()),
            text => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl Secret {
    /// The path of `@FILE`.
    fn path(&self) -> Option<&str> {
        self.0.strip_prefix('@')
    }

    /// Returns the secret, or the first line of its file.
    pub(crate) fn first_line(&self) -> Result<String, CommandError> {
        let Some(path) = self.path() else { return Ok(self.0.clone()) };
        Ok(read(path)?.lines().next().unwrap_or_default().trim().to_owned())
    }
}

/// Returns all secrets; a file has one per line.
pub(crate) fn lines(secrets: &[Secret]) -> Result<Vec<String>, CommandError> {
    let mut all = Vec::new();
    for secret in secrets {
        let Some(path) = secret.path() else {
            all.push(secret.0.clone());
            continue;
        };
        let text = read(path)?;
        let found = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let before = all.len();
        all.extend(found.map(str::to_owned));
        if all.len() == before {
            return Err(
                CommandError::usage(format!("no credentials in {path}")).hint("write one per line")
            );
        }
    }
    Ok(all)
}

/// Reads the secret of the Engine API.
pub(crate) fn jwt(path: &Path) -> Result<JwtSecret, CommandError> {
    JwtSecret::read(path).map_err(|error| CommandError::caused(Exit::Usage, &error))
}

/// Returns an `Authorization` header with a token that is issued now.
pub(crate) fn jwt_header(path: &Path) -> Result<HeaderValue, CommandError> {
    let header = Credentials::Bearer(jwt(path)?.token(SystemTime::now())).to_header();
    header.map_err(|error| CommandError::usage(format!("the token is not valid: {error}")))
}

fn read(path: &str) -> Result<String, CommandError> {
    std::fs::read_to_string(path).map_err(|error| {
        CommandError::usage(format!("cannot read credentials from {path}: {error}"))
            .hint("@FILE is a file that you can read, such as the .cookie of a running node")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let secret: Secret = "hush".parse().unwrap();
        assert!(!format!("{secret:?}").contains("hush"));
        assert!("".parse::<Secret>().is_err());
    }
}
