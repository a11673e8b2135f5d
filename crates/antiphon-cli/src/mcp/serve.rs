//! `antiphon mcp serve`: the methods of any JSON-RPC service as tools of the Model Context Protocol.
//!
//! On `stdio:`, stdout is the protocol, so everything else goes to stderr.

use antiphon::openrpc::Document;
use antiphon::transport::http::Guard;
use antiphon::{Client, Dialect, Endpoint, Server};
use antiphon_mcp::McpServer;
use antiphon_mcp::bridge::NameRules;
use antiphon_mcp::from_openrpc::{FromOpenRpcError, ToolsFromOpenRpc};
use antiphon_mcp::http::StreamableHttp;
use clap::{Arg, Args};

use super::serving;
use crate::connect::ConnectArgs;
use crate::endpoint;
use crate::exit::{CommandError, Exit};
use crate::openrpc::discovery::{self, SchemaArgs};
use crate::serve::bind;
use crate::tls::{ServerCertificate, ServerTls};

/// Serve the methods of a JSON-RPC service as MCP tools, and its subscriptions as resources
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args(of_upstream))]
pub(crate) struct McpServeArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    /// Listen on these endpoints, such as http://127.0.0.1:8651/mcp; port 0 picks a free port
    #[arg(value_name = "LISTEN", value_parser = endpoint::servable, default_value = "stdio:")]
    listen: Vec<Endpoint>,
    /// Accept web pages of this origin, such as https://app.example, or * for any [repeatable]
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Accept this Host header too; by default, a loopback address accepts only loopback hosts
    /// [repeatable]
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    tls: ServerTls,
}

/// The flags that choose and describe the tools.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tools")]
struct ToolFlags {
    /// Offer only methods that match a pattern, such as 'math.*' [repeatable, or with commas]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    allow: Vec<String>,
    /// Do not offer methods that match a pattern, even if they are allowed [repeatable]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    deny: Vec<String>,
    /// Mark the tools of methods that match a pattern as read-only [repeatable]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    read_only: Vec<String>,
    /// Also mark tools as read-only whose method begins with get, list, find, is or a similar word
    #[arg(long)]
    guess_read_only: bool,
    /// Put this text before the name of each tool
    #[arg(long, value_name = "PREFIX", value_parser = prefix, default_value = "")]
    #[arg(hide_default_value = true)]
    prefix: String,
    /// Give the tool of a method another name [repeatable]
    #[arg(long, value_name = "METHOD=TOOL", value_parser = renaming)]
    rename: Vec<(String, String)>,
    /// Do not declare the schemas of results, for a document that is inaccurate
    #[arg(long)]
    no_output_schemas: bool,
    /// Give the server this name [default: the title of the document]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  antiphon mcp serve --from http://127.0.0.1:8650      # for a client, by stdio
  antiphon mcp serve --from ws://127.0.0.1:8650 http://127.0.0.1:8651/mcp
  antiphon mcp serve --from 'exec:antiphon serve stdio:' --deny 'notify_*,panic'
  antiphon mcp serve --from http://127.0.0.1:8545 --dialect ethereum \\
      --schema openrpc.json --allow 'eth_get*,eth_call' --read-only '*'

For a client that starts its servers, put the command into its settings:
  \"demo\": { \"command\": \"antiphon\",
            \"args\": [\"mcp\", \"serve\", \"--from\", \"http://127.0.0.1:8650\"] }

Methods, params and results come from the OpenRPC document that rpc.discover
returns, or from --schema FILE. `antiphon list` prints them. Subscriptions need
an endpoint that can call back: ws:// instead of http://. Without --allow, a
model can call every method: allow those that it needs.";

/// Changes the flags of the connection where this command differs from those that send one call.
fn of_upstream(flag: Arg) -> Arg {
    match flag.get_id().as_str() {
        "endpoint" => flag
            .long("from")
            .value_name("ENDPOINT")
            .required(true)
            .help("Endpoint of the service, such as http://127.0.0.1:8650 or exec:my-server"),
        "timeout" => {
            flag.help("Fail each call of the service after this long; 0 or none waits forever")
        }
        _ => flag,
    }
}

fn prefix(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        text => tool_name(text),
    }
}

fn tool_name(text: &str) -> Result<String, String> {
    NameRules::check(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

fn renaming(text: &str) -> Result<(String, String), String> {
    let (method, tool) = text.split_once('=').ok_or("use METHOD=TOOL, such as math.add=add")?;
    Ok((method.to_owned(), tool_name(tool)?))
}

pub(crate) async fn run(args: McpServeArgs) -> Result<Exit, CommandError> {
    let certificate = args.tls.server(&args.listen, &args.allow_host)?;
    let document = args.schema.read()?;
    // Before the service is called: a port that is taken needs no connection.
    let bound = bind(&args.listen).await?;
    let connection = args.connect.connect(args.connect.reconnects(), None).await?;
    let serving = args.serve(bound, certificate.as_ref(), &connection.client, document);
    let served = serving.await;
    args.connect.close(connection).await;
    served
}

impl McpServeArgs {
    async fn serve(
        &self,
        bound: Server,
        certificate: Option<&ServerCertificate>,
        client: &Client,
        document: Option<Document>,
    ) -> Result<Exit, CommandError> {
        let document = match document {
            Some(document) => document,
            None => self.connect.in_time(discovery::fetch(client)).await??,
        };
        let server = self.server(document, client)?;
        let bound = self.settings(bound, certificate, &server)?;
        let announce = || {
            if let Some(certificate) = certificate {
                certificate.announce();
            }
        };
        serving::serve(bound, &server, announce).await
    }

    /// Returns the server with the tools of the service.
    fn server(&self, document: Document, client: &Client) -> Result<McpServer, CommandError> {
        let info = document.info.clone();
        let mut builder = match &self.tools.name {
            Some(name) => McpServer::builder(name, info.version).title(info.title),
            None => McpServer::builder(info.title, info.version),
        };
        if let Some(description) = info.description {
            builder = builder.description(description);
        }
        let tools = ToolsFromOpenRpc::new(document, client)
            // HTTP has no subscriptions.
            .subscriptions(!matches!(self.connect.endpoint(), Endpoint::Http { .. }));
        let tools = self.tools.apply(tools);
        let tools = match self.connect.limit() {
            Some(limit) => tools.timeout(limit),
            None => tools,
        };
        Ok(tools.build_into(builder).map_err(|error| not_offered(&error))?.build())
    }

    fn settings(
        &self,
        bound: Server,
        certificate: Option<&ServerCertificate>,
        server: &McpServer,
    ) -> Result<Server, CommandError> {
        let guard = self.allow_origin.iter().fold(Guard::new(), Guard::allow_origin);
        let guard = self.allow_host.iter().fold(guard, Guard::allow_host);
        let policy = StreamableHttp::new().policy(server);
        let bound = serving::with_http(bound.dialect(Dialect::mcp()).guard(guard), policy)?;
        let Some(certificate) = certificate else { return Ok(bound) };
        certificate.write()?;
        Ok(bound.tls(certificate.tls.clone()))
    }
}

impl ToolFlags {
    fn apply(&self, tools: ToolsFromOpenRpc) -> ToolsFromOpenRpc {
        let tools = tools
            .deny(self.deny.iter().cloned())
            .read_only(self.read_only.iter().cloned())
            .guess_read_only(self.guess_read_only)
            .prefix(&self.prefix)
            .output_schemas(!self.no_output_schemas);
        let tools = match self.allow.is_empty() {
            true => tools,
            false => tools.allow(self.allow.iter().cloned()),
        };
        self.rename.iter().fold(tools, |tools, (method, tool)| tools.rename(method, tool))
    }
}

fn not_offered(error: &FromOpenRpcError) -> CommandError {
    let failure = CommandError::caused(Exit::Usage, error);
    match error {
        FromOpenRpcError::NothingAllowed { .. } => {
            failure.hint("`antiphon list` prints the methods; --allow and --deny choose from them")
        }
        FromOpenRpcError::Empty { .. } => {
            failure.hint("--schema FILE reads an OpenRPC document from a file")
        }
        FromOpenRpcError::UnknownMethod { .. } => {
            failure.hint("`antiphon list` prints the methods")
        }
        FromOpenRpcError::Name { .. } => failure.hint("--rename METHOD=TOOL gives the name"),
        FromOpenRpcError::TooLarge { .. } => failure.hint("--allow chooses methods"),
        _ => failure.hint("--deny METHOD leaves a method out"),
    }
}
