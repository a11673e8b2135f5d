//! The tokens that `antiphon mcp login` has stored.
//!
//! They are files that only the user can read. No command prints them.

use std::path::PathBuf;

use antiphon::BoxFuture;
use antiphon_mcp::auth::client::{
    AuthorizeUser, FileTokenStore, Grant, OAuthClient, PendingAuthorization, UserError,
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

/// Returns the stored tokens of a server. They are refreshed, but the user is not asked.
pub(super) fn stored(server: &str) -> Result<OAuthClient, CommandError> {
    client(server, Grant::authorization_code(NotLoggedIn(server.to_owned())))
}

/// Creates a client that keeps its tokens in the folder.
pub(super) fn client(server: &str, grant: Grant) -> Result<OAuthClient, CommandError> {
    let builder = OAuthClient::builder(server, grant).client_name("antiphon");
    let client = builder.store(FileTokenStore::new(directory()?)).build();
    client.map_err(|error| CommandError::caused(Exit::Usage, &error))
}

/// Tells the user to log in, instead of asking in the middle of another command.
struct NotLoggedIn(String);

impl AuthorizeUser for NotLoggedIn {
    fn prepare(&self) -> BoxFuture<'_, Result<Box<dyn PendingAuthorization>, UserError>> {
        let reason = format!("log in first: antiphon mcp login {}", self.0);
        Box::pin(std::future::ready(Err(UserError::Other(reason))))
    }
}
