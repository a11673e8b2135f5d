//! The tokens that `antiphon mcp login` has stored.
//!
//! They are files that only the user can read. No command prints them.

use std::path::PathBuf;

use antiphon::BoxFuture;
use antiphon_mcp::auth::WebUrlError;
use antiphon_mcp::auth::client::{
    AuthorizeUser, FileTokenStore, Grant, OAuthClient, OAuthClientBuilder, OAuthError,
    PendingAuthorization, UserError,
};

use crate::exit::{CommandError, Exit};

/// The folder of the tokens.
pub(super) fn directory() -> Result<PathBuf, CommandError> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    let state = state.map(PathBuf::from).or_else(home);
    let state = state.ok_or_else(|| {
        CommandError::usage("there is no folder for tokens").hint("set XDG_STATE_HOME or HOME")
    })?;
    Ok(state.join("antiphon").join("mcp"))
}

/// Returns the stored tokens of a server. They are refreshed, but the user is not asked. A server over plain HTTP on
/// another machine has none, because a token must not travel without TLS.
pub(super) fn stored(server: &str) -> Result<Option<OAuthClient>, CommandError> {
    let grant = Grant::authorization_code(NotLoggedIn(server.to_owned()));
    match client(server, grant)?.build() {
        Ok(client) => Ok(Some(client)),
        Err(OAuthError::Url(WebUrlError::Insecure(_))) => Ok(None),
        Err(error) => Err(CommandError::caused(Exit::Usage, &error)),
    }
}

/// Begins a client that keeps its tokens in the folder.
pub(super) fn client(server: &str, grant: Grant) -> Result<OAuthClientBuilder, CommandError> {
    let store = FileTokenStore::new(directory()?);
    Ok(OAuthClient::builder(server, grant).client_name("antiphon").store(store))
}

/// Tells the user to log in, instead of asking in the middle of another command.
struct NotLoggedIn(String);

impl AuthorizeUser for NotLoggedIn {
    fn prepare(&self) -> BoxFuture<'_, Result<Box<dyn PendingAuthorization>, UserError>> {
        let reason = format!("log in first: antiphon mcp login {}", self.0);
        Box::pin(std::future::ready(Err(UserError::Other(reason))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a server can be used without a login.
    #[test]
    fn a_token_is_not_sent_in_plain_text_to_another_machine() {
        for (server, has_tokens) in [
            ("http://192.0.2.1:3000/mcp", false),
            ("http://mcp.internal/mcp", false),
            ("http://127.0.0.1:3000/mcp", true),
            ("https://mcp.example/mcp", true),
        ] {
            assert_eq!(stored(server).unwrap().is_some(), has_tokens, "{server}");
        }
    }
}
