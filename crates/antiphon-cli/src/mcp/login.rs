//! `antiphon mcp login` and `logout`: access to servers that require authorization.

use antiphon::Endpoint;
use antiphon_mcp::auth::client::{Grant, LoopbackRedirect, OAuthClient, PreRegisteredClient};
use antiphon_mcp::auth::{Scopes, Secret as OAuthSecret};
use antiphon_mcp::client::McpClient;
use clap::Args;

use super::failure::{cannot_connect, command_error};
use super::tokens;
use crate::exit::{CommandError, Exit};
use crate::secret::Secret;
use crate::tls::ClientTls;
use crate::{endpoint, output};

/// Log in to a server that requires authorization
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpLoginArgs {
    /// Endpoint of the MCP server, such as https://mcp.example/mcp
    #[arg(value_parser = endpoint::callable)]
    endpoint: Endpoint,
    /// Request this scope [repeatable] [default: the scopes that the server requires]
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Log in as this client, which is registered with the authorization server
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Secret of --client-id: the text, or the first line of a file
    #[arg(long, value_name = "SECRET|@FILE", requires = "client_id")]
    client_secret: Option<Secret>,
    /// Log in as the client itself, without a user
    #[arg(long, requires = "client_secret")]
    client_credentials: bool,
    /// Receive the redirect of the browser on this port [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    #[command(flatten)]
    tls: ClientTls,
}

const EXAMPLES: &str = "\
Examples:
  antiphon mcp login https://mcp.example/mcp
  antiphon mcp login https://mcp.example/mcp --scope files:read
  antiphon mcp login https://mcp.example/mcp --client-id robot \\
      --client-secret @secret.txt --client-credentials

The command prints the page to open, and waits for the browser. The tokens are
stored in files that only you can read: in antiphon/mcp under $XDG_STATE_HOME,
or under ~/.local/state. Other commands use and refresh them.
`antiphon mcp logout` deletes the tokens of all servers.";

pub(super) async fn run(args: McpLoginArgs) -> Result<Exit, CommandError> {
    let server = args.endpoint.to_string();
    if !matches!(args.endpoint, Endpoint::Http { .. }) {
        return Err(CommandError::usage(format!("{server} is not HTTP, so it has no login"))
            .hint("give the credentials of a process by its environment"));
    }
    let oauth = args.oauth(&server)?;
    let builder = McpClient::builder().tls(args.tls.client([&args.endpoint])?).credentials(oauth);
    let client = builder.connect(args.endpoint.clone()).await;
    let client =
        client.map_err(|error| args.tls.advise(cannot_connect(&error, &args.endpoint, None)))?;
    // A server may let clients connect without a token.
    let listed = client.request::<antiphon_mcp::types::ListToolsResult>("tools/list", ()).await;
    if let Err(error) = listed
        && error.as_rpc().is_none()
    {
        return Err(command_error(&error));
    }
    client.close().await;
    output::note(&format!("logged in to {server}"));
    Ok(Exit::Success)
}

impl McpLoginArgs {
    fn oauth(&self, server: &str) -> Result<OAuthClient, CommandError> {
        let grant = match self.client_credentials {
            true => Grant::ClientCredentials,
            false => Grant::authorization_code(
                LoopbackRedirect::new(|url| {
                    output::note(&format!("Open this page to log in: {url}"));
                })
                .port(self.port),
            ),
        };
        let mut builder = tokens::client(server, grant)?;
        if !self.scope.is_empty() {
            builder = builder.scopes(Scopes::from_iter(self.scope.iter().cloned()));
        }
        if let Some(id) = &self.client_id {
            let mut client = PreRegisteredClient::new(id);
            if let Some(secret) = &self.client_secret {
                client = client.secret(OAuthSecret::new(secret.first_line()?));
            }
            builder = builder.pre_registered(client);
        }
        builder.build().map_err(|error| CommandError::caused(Exit::Usage, &error))
    }
}

/// Delete the stored tokens of all servers
#[derive(Debug, Args)]
pub(crate) struct McpLogoutArgs {}

pub(super) fn logout(_: &McpLogoutArgs) -> Result<Exit, CommandError> {
    let directory = tokens::directory()?;
    match std::fs::remove_dir_all(&directory) {
        Ok(()) => output::note("logged out"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            output::note("there are no tokens");
        }
        Err(error) => {
            let what = format!("cannot delete {}: {error}", directory.display());
            return Err(CommandError::new(Exit::Transport, what));
        }
    }
    Ok(Exit::Success)
}
