//! The headers of the HTTP requests that a command sends: `-H` and `--user`.

use antiphon::layer::Credentials;
use clap::Args;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use crate::exit::CommandError;
use crate::secret::Secret;

/// The flags that add headers to each HTTP request, and to the request that opens a WebSocket.
#[derive(Clone, Debug, Args)]
pub(crate) struct RequestHeaders {
    /// Send this HTTP header, such as 'Authorization: Bearer ...' [repeatable]
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Authenticate as this user, or with the first line of a file, such as the cookie of a Bitcoin
    /// node
    #[arg(short, long, value_name = "USER:PASSWORD|@FILE")]
    user: Option<Secret>,
}

impl RequestHeaders {
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.user.is_none()
    }

    /// Returns all headers.
    pub(crate) fn read(&self) -> Result<Vec<(HeaderName, HeaderValue)>, CommandError> {
        let Some(user) = &self.user else { return Ok(self.headers.clone()) };
        self.check_credentials("--user")?;
        let basic = (AUTHORIZATION, basic(user)?);
        Ok(std::iter::once(basic).chain(self.headers.iter().cloned()).collect())
    }

    /// Fails if `-H` sends an `Authorization` header beside that of a flag. A request has only one.
    pub(crate) fn check_credentials(&self, flag: &str) -> Result<(), CommandError> {
        match self.headers.iter().any(|(name, _)| name == AUTHORIZATION) {
            false => Ok(()),
            true => Err(CommandError::usage(format!(
                "{flag} and -H 'Authorization: ...' cannot be combined"
            ))
            .hint("a request has one Authorization header; remove one of the flags")),
        }
    }
}

/// Returns the header of a user and password.
fn basic(user: &Secret) -> Result<HeaderValue, CommandError> {
    let text = user.first_line()?;
    let (user, password) = text.split_once(':').ok_or_else(|| {
        CommandError::usage("--user requires a user and a password, such as ada:secret")
            .hint("@FILE reads them from a file")
    })?;
    let (user, password) = (user.to_owned(), password.to_owned());
    let header = Credentials::Basic { user, password }.to_header();
    header.map_err(|error| CommandError::usage(format!("the credentials are not valid: {error}")))
}

/// Parses `Name: value`.
fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("the colon is missing; use 'Name: value'")?;
    let name: HeaderName =
        name.trim().parse().map_err(|_| format!("`{name}` is not a header name"))?;
    let value = value.trim().parse().map_err(|_| "the value contains a control character")?;
    if [http::header::CONTENT_LENGTH, http::header::TRANSFER_ENCODING].contains(&name) {
        return Err(format!("`{name}` is set automatically"));
    }
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::header;

    #[test]
    fn a_header_has_a_name_and_a_value() {
        let (name, value) = header("X-Key:  a:b ").unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-key", "a:b"));
        for bad in ["X-Key", ": x", "a b: c", "a: b\nc", "Content-Length: 3"] {
            assert!(header(bad).is_err(), "{bad}");
        }
    }
}
