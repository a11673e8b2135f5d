//! `antiphon mcp call`: calls a tool and prints its result.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use antiphon::RawJson;
use antiphon::core::JsonKind;
use antiphon_mcp::client::McpClient;
use antiphon_mcp::types::{CallToolResult, ProgressParams};
use clap::Args;

use super::connect::McpConnectArgs;
use super::content;
use super::failure::{command_error, hint_for_unknown, unknown_name};
use crate::exit::{CommandError, Exit};
use crate::output;
use crate::params::ParamArgs;
use crate::waiting_line::with_waiting_line;

/// Call a tool and print its result
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpCallArgs {
    #[command(flatten)]
    connect: McpConnectArgs,
    /// Tool to call
    tool: String,
    #[command(flatten)]
    arguments: ParamArgs,
    /// Write pictures, sounds and other binary content to this folder
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
    /// Print the whole result as JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  antiphon mcp call 'exec:npx -y @modelcontextprotocol/server-everything' \\
      get-sum a:=2 b:=3
  antiphon mcp call http://127.0.0.1:8651/mcp greet name=Ada
  antiphon mcp call https://mcp.example/mcp search -d '{\"query\": \"rust\"}'
  antiphon mcp call http://127.0.0.1:8651/mcp order --answer confirm:=true

Arguments:
  name=text     an argument with a String
  name:=json    an argument with a JSON value

Output:
  On a terminal, the content of the result. Elsewhere, the result as JSON. The
  exit code is 1 if the tool failed. If the server asks the user, the command
  asks on the terminal; --answer answers without a terminal.";

pub(super) async fn run(args: McpCallArgs) -> Result<Exit, CommandError> {
    let McpCallArgs { connect, tool, arguments, save, json } = args;
    let arguments = read(&arguments)?;
    connect
        .with_client(async |client| {
            // With the list, arguments are checked before the call.
            let _ = client.list_tools().await;
            let call = client.call_tool(&tool, &arguments).on_progress(show_progress);
            let result = match with_waiting_line(&tool, call.into_future()).await {
                Ok(result) => result,
                Err(error) if error.as_rpc().is_none() => return Err(command_error(&error)),
                Err(error) => {
                    let names = tool_names(client).await;
                    return Err(unknown_name(command_error(&error), &tool, &names));
                }
            };
            let exit = show(&result, json, save.as_deref())?;
            if exit != Exit::Success {
                // Some servers report an unknown tool as a tool that failed.
                let hint = hint_for_unknown(&tool, &tool_names(client).await);
                hint.into_iter().for_each(|hint| output::note(&format!("hint: {hint}")));
            }
            Ok(exit)
        })
        .await
}

/// Reads the arguments, which have names.
fn read(arguments: &ParamArgs) -> Result<RawJson, CommandError> {
    let remedy = "write name=text, name:=json or -d '{\"name\": 1}'";
    match arguments.read()?.map(antiphon::Params::into_json) {
        None => RawJson::parse("{}").map_err(|error| CommandError::usage(error.to_string())),
        Some(json) if json.kind() == JsonKind::Object => Ok(json),
        Some(_) => Err(CommandError::usage("the arguments of a tool have names").hint(remedy)),
    }
}

fn show_progress(progress: ProgressParams) {
    if !io::stderr().is_terminal() {
        return;
    }
    let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let message = progress.message.map(|message| format!(" {message}")).unwrap_or_default();
    let line = format!("{}{total}{message}", progress.progress);
    output::note(&output::dim(&output::visible(&line)));
}

async fn tool_names(client: &McpClient) -> Vec<String> {
    let tools = client.list_tools().await.unwrap_or_default();
    tools.iter().map(|tool| tool.name.clone()).collect()
}

fn show(
    result: &CallToolResult,
    json: bool,
    save: Option<&std::path::Path>,
) -> Result<Exit, CommandError> {
    if let Some(folder) = save {
        content::save(&result.content, folder)?;
    }
    let is_for_people = !json && io::stdout().is_terminal();
    if !is_for_people {
        let encoded = RawJson::encode(result);
        let encoded =
            encoded.map_err(|error| CommandError::new(Exit::Protocol, error.to_string()))?;
        output::result(&encoded)?;
    } else {
        content::show(result)?;
        if save.is_none() && content::has_binary(&result.content) {
            output::note(&output::dim("--save FOLDER writes binary content"));
        }
    }
    Ok(if result.failed() { Exit::PeerError } else { Exit::Success })
}
