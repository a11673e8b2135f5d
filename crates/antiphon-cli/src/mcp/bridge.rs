//! `antiphon mcp bridge`: other MCP servers, offered on another transport, in other revisions, or as one.

use std::time::Duration;

use antiphon::transport::http::Guard;
use antiphon::{Dialect, Endpoint};
use antiphon_mcp::bridge::{Bridge, BridgeError, Connect, NameRules, Upstream};
use antiphon_mcp::client::{McpClient, McpError};
use antiphon_mcp::http::StreamableHttp;
use clap::Args;

use super::connect::ConnectionFlags;
use super::serving;
use crate::endpoint;
use crate::exit::{CommandError, Exit};
use crate::quantity::Span;
use crate::serve::bind;

/// Offer other MCP servers on another transport, in other revisions, or as one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpBridgeArgs {
    /// Offer this server; PREFIX is put before the names of its tools and prompts [repeatable]
    #[arg(long, value_name = "[PREFIX=]ENDPOINT", required = true, value_parser = target)]
    to: Vec<Target>,
    /// Listen on these endpoints, such as http://127.0.0.1:8651/mcp; port 0 picks a free port
    #[arg(value_name = "LISTEN", value_parser = endpoint::servable, default_value = "stdio:")]
    listen: Vec<Endpoint>,
    /// Offer only tools and prompts that match a pattern, such as 'read_*' [repeatable]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    allow: Vec<String>,
    /// Do not offer tools and prompts that match a pattern, even if they are allowed [repeatable]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    deny: Vec<String>,
    /// Offer a tool or prompt under another name [repeatable]
    #[arg(long, value_name = "NAME=OTHER", value_parser = renaming)]
    rename: Vec<(String, String)>,
    /// Open new connections for each session of a legacy client, so that it has its own processes
    #[arg(long)]
    per_session: bool,
    /// Also serve clients of revision 2024-11-05 over HTTP+SSE
    #[arg(long)]
    http_sse: bool,
    /// Accept web pages of this origin, such as https://app.example, or * for any [repeatable]
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Accept this Host header too; by default, a loopback address accepts only loopback hosts
    /// [repeatable]
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Fail if a server does not start, or list what it offers, within this time
    #[arg(long, value_name = "TIME", default_value_t = Span(DEFAULT_TIMEOUT))]
    timeout: Span,
    #[command(flatten)]
    upstream: ConnectionFlags,
}

const EXAMPLES: &str = "\
Examples:
  # a server on stdio, for clients over HTTP
  antiphon mcp bridge --to 'exec:npx -y @modelcontextprotocol/server-memory' \\
      http://127.0.0.1:8651/mcp
  # a server over HTTP, for a client that starts a process
  antiphon mcp bridge --to https://mcp.example/mcp
  # two servers as one, without the tools that write
  antiphon mcp bridge --deny 'write_*' \\
      --to mem_='exec:npx -y @modelcontextprotocol/server-memory' \\
      --to fs_='exec:npx -y @modelcontextprotocol/server-filesystem .'

Patterns and names are those of the servers, without prefixes. The flags of the
connection apply to every server. The tokens of `antiphon mcp login` are used.";

/// The timeout without `--timeout`: `npx` may have to install a server first.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// A server to offer.
#[derive(Clone, Debug)]
struct Target {
    prefix: String,
    endpoint: Endpoint,
}

fn target(text: &str) -> Result<Target, String> {
    // A prefix has no colon, and each endpoint has one before its first `=`.
    let prefixed = text.split_once('=').filter(|(prefix, _)| !prefix.contains(':'));
    let (prefix, endpoint) = prefixed.unwrap_or(("", text));
    if !prefix.is_empty() {
        NameRules::check(prefix).map_err(|error| error.to_string())?;
    }
    Ok(Target { prefix: prefix.to_owned(), endpoint: endpoint::callable(endpoint)? })
}

fn renaming(text: &str) -> Result<(String, String), String> {
    let (name, other) = text.split_once('=').ok_or("use NAME=OTHER, such as read_file=read")?;
    NameRules::check(other).map_err(|error| error.to_string())?;
    Ok((name.to_owned(), other.to_owned()))
}

pub(super) async fn run(args: McpBridgeArgs) -> Result<Exit, CommandError> {
    // Before the servers are started: a port that is taken needs none of them.
    let bound = bind(&args.listen).await?;
    let mut bridge = Bridge::new().per_session(args.per_session);
    for target in &args.to {
        bridge = bridge.upstream(args.upstream(target)?);
    }
    let server = bridge.build().await.map_err(|error| unusable(&error))?;
    let guard = args.allow_host.iter().fold(Guard::new(), Guard::allow_host);
    let guard = args.allow_origin.iter().fold(guard, Guard::allow_origin);
    let http = StreamableHttp::new().http_sse(args.http_sse);
    let bound =
        serving::with_http(bound.dialect(Dialect::mcp()).guard(guard), http.policy(&server))?;
    serving::serve(bound, &server, || {}).await
}

impl McpBridgeArgs {
    fn upstream(&self, target: &Target) -> Result<Upstream, CommandError> {
        let mut names = NameRules::default().prefix(&target.prefix).deny(&self.deny);
        if !self.allow.is_empty() {
            names = names.allow(&self.allow);
        }
        for (name, other) in &self.rename {
            names = names.rename(name, other);
        }
        // Wrong flags are reported before anything is started.
        drop(self.upstream.builder(McpClient::builder(), &target.endpoint)?);
        let (flags, endpoint) = (self.upstream.clone(), target.endpoint.clone());
        let connect = Connect::new(move |builder| {
            let builder = flags.builder(builder, &endpoint);
            let endpoint = endpoint.clone();
            async move {
                let builder =
                    builder.map_err(|error| McpError::Unsupported(error.what().to_owned()))?;
                builder.connect(endpoint).await
            }
        });
        let upstream = Upstream::new(target.endpoint.to_string()).names(names);
        Ok(upstream.connect_with(connect).timeout(self.timeout.0))
    }
}

fn unusable(error: &BridgeError) -> CommandError {
    let exit = match error {
        BridgeError::SameName { .. } => Exit::Usage,
        BridgeError::Upstream { source, .. } if matches!(**source, McpError::TimedOut(_)) => {
            Exit::Timeout
        }
        _ => Exit::Transport,
    };
    let failure = CommandError::caused(exit, error);
    match error {
        BridgeError::SameName { .. } => failure.hint("--to PREFIX=ENDPOINT sets a prefix"),
        _ => failure,
    }
}
