//! The connection of an MCP command: its flags, what the client can be asked, and its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antiphon::Endpoint;
use antiphon_mcp::client::{McpClient, McpClientBuilder};
use antiphon_mcp::types::{Implementation, LoggingLevel, LoggingMessageParams, Revision, Root};
use clap::Args;
use http::header::AUTHORIZATION;
use tokio::signal::ctrl_c;

use super::ask_user::{AnswerFlags, AskUser};
use super::failure::{cannot_connect, command_error};
use super::tokens;
use crate::exit::{CommandError, Exit};
use crate::quantity::MaybeSpan;
use crate::request_headers::RequestHeaders;
use crate::tls::ClientTls;
use crate::waiting_line::{self, with_waiting_line};
use crate::{connect::CLOSE_TIMEOUT, endpoint, output};

/// The timeout without `--timeout`. A tool may ask the user, or a model.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a server may take to tell its era, so that a server that ignores the question is not lost.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The flags of every MCP command that connects to a server.
#[derive(Debug, Args)]
pub(crate) struct McpConnectArgs {
    /// Endpoint of the MCP server, such as https://mcp.example/mcp or 'exec:npx -y my-server'
    #[arg(value_parser = endpoint::callable)]
    endpoint: Endpoint,
    #[command(flatten)]
    settings: ConnectionFlags,
    /// Name a folder that the server may use, as a path or a file: URI [repeatable]
    #[arg(long, value_name = "FOLDER|URI", value_parser = root)]
    root: Vec<Root>,
    /// Print log messages of the server at this level and above, such as debug or warning
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LoggingLevel>,
    #[command(flatten)]
    answers: AnswerFlags,
    /// Fail if there is no response for this long; 0 or none waits forever
    #[arg(long, value_name = "TIME", default_value_t = DEFAULT_TIMEOUT.into())]
    timeout: MaybeSpan,
    /// Print the server, its revision and its instructions on stderr
    #[arg(short, long)]
    verbose: bool,
}

/// The flags of every connection, also of those of a bridge.
#[derive(Clone, Debug, Args)]
pub(super) struct ConnectionFlags {
    #[command(flatten)]
    headers: RequestHeaders,
    /// Use this revision of MCP, such as 2025-11-25 [default: the newest that the server supports]
    #[arg(long, value_name = "REVISION")]
    revision: Option<Revision>,
    #[command(flatten)]
    tls: ClientTls,
}

impl McpConnectArgs {
    /// Connects, does the work until its end or Ctrl-C, and closes the connection.
    pub(super) async fn with_client(
        self,
        work: impl AsyncFnOnce(&McpClient) -> Result<Exit, CommandError>,
    ) -> Result<Exit, CommandError> {
        let client = self.connect().await?;
        // Dropping the work cancels its calls. Without that, a server would go on with them.
        let outcome = tokio::select! {
            outcome = work(&client) => outcome,
            _ = ctrl_c() => {
                waiting_line::erase();
                Ok(Exit::Interrupted)
            }
        };
        // The outcome is printed first: closing the connection may take time.
        let exit = outcome.map_err(|failure| self.settings.tls.advise(failure));
        let exit = exit.unwrap_or_else(CommandError::report);
        tokio::select! {
            _ = tokio::time::timeout(CLOSE_TIMEOUT, client.close()) => Ok(exit),
            _ = ctrl_c() => Ok(Exit::Interrupted),
        }
    }

    async fn connect(&self) -> Result<McpClient, CommandError> {
        let (endpoint, tls) = (&self.endpoint, &self.settings.tls);
        let builder = self.settings.builder(McpClient::builder(), endpoint)?;
        let builder = self.interactive(builder)?;
        let connecting = builder.connect(endpoint.clone());
        let client = with_waiting_line("the server", connecting).await;
        let client = client.map_err(|error| {
            tls.advise(cannot_connect(&error, endpoint, self.settings.revision))
        })?;
        if let Some(level) = self.log_level {
            let set = client.set_level(level).await;
            set.map_err(|error| command_error(&error).about("--log-level"))?;
        }
        if self.verbose {
            introduce(&client);
        }
        Ok(client)
    }

    /// Answers the questions of the server, on the terminal or by the flags.
    fn interactive(&self, builder: McpClientBuilder) -> Result<McpClientBuilder, CommandError> {
        let info = Implementation::new("antiphon", env!("CARGO_PKG_VERSION"));
        let mut builder = builder.client_info(info).on_log(print_log);
        builder = match self.timeout.0 {
            Some(timeout) => builder.timeout(timeout).probe_timeout(timeout.min(PROBE_TIMEOUT)),
            None => builder.without_timeout(),
        };
        if !self.root.is_empty() {
            builder = builder.roots(self.root.clone());
        }
        let user = Arc::new(AskUser::new(&self.answers)?);
        Ok(user.declare(builder))
    }
}

impl ConnectionFlags {
    /// Applies the flags that every kind of client has.
    pub(super) fn builder(
        &self,
        mut builder: McpClientBuilder,
        endpoint: &Endpoint,
    ) -> Result<McpClientBuilder, CommandError> {
        let is_http = matches!(endpoint, Endpoint::Http { .. });
        let headers = self.headers.read()?;
        if !headers.is_empty() && !is_http {
            return Err(CommandError::usage("only HTTP has headers")
                .hint("give the credentials of a process by its environment"));
        }
        let has_token = headers.iter().any(|(name, _)| name == AUTHORIZATION);
        for (name, value) in headers {
            builder = builder.header(name, value);
        }
        if is_http
            && !has_token
            && let Some(tokens) = tokens::stored(&endpoint.to_string())?
        {
            builder = builder.credentials(tokens);
        }
        if let Some(revision) = self.revision {
            builder = builder.revision(revision);
        }
        Ok(builder.tls(self.tls.client([endpoint])?))
    }
}

fn root(text: &str) -> Result<Root, String> {
    if text.starts_with("file:") {
        return Ok(Root::new(text));
    }
    let path = std::path::absolute(Path::new(text)).map_err(|error| error.to_string())?;
    let text = path.to_str().ok_or("the path is not UTF-8; use a file: URI")?;
    let encoded = text.bytes().map(|byte| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    Ok(Root::new(format!("file://{}", encoded.collect::<String>())))
}

fn print_log(message: LoggingMessageParams) {
    let text = match message.data.as_str() {
        Some(text) => text.to_owned(),
        None => message.data.to_string(),
    };
    let logger = message.logger.map(|logger| format!(" {logger}")).unwrap_or_default();
    output::note(&output::dim(&output::visible(&format!("{}{logger}: {text}", message.level))));
}

fn introduce(client: &McpClient) {
    let info = client.server_info();
    let name =
        info.map_or_else(|| "a server".to_owned(), |it| format!("{} {}", it.name, it.version));
    let line = format!("{name}, revision {}", client.revision());
    output::note(&output::dim(&output::visible(&line)));
    if let Some(instructions) = client.instructions() {
        output::note(&output::dim(&output::visible(&instructions)));
    }
}
