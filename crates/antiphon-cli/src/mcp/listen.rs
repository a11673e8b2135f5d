//! `antiphon mcp listen`: the changes of a server, one per line.

use antiphon::RawJson;
use antiphon_mcp::client::{McpClient, ServerNotification};
use antiphon_mcp::types::SubscriptionFilter;
use clap::Args;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::connect::McpConnectArgs;
use super::failure::command_error;
use crate::exit::{CommandError, Exit};
use crate::output;

/// Print the changes of a server, one JSON object per line
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpListenArgs {
    #[command(flatten)]
    connect: McpConnectArgs,
    /// Resources whose updates are printed
    #[arg(value_name = "URI")]
    resources: Vec<String>,
    /// Exit after this many changes
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  antiphon mcp listen http://127.0.0.1:8651/mcp       # changes of the lists
  antiphon mcp listen http://127.0.0.1:8651/mcp config://app --count 1

Changes of the lists of tools, resources and prompts are always printed.
Updates are printed for the resources that are named. Ctrl-C ends the command.";

pub(super) async fn run(args: McpListenArgs) -> Result<Exit, CommandError> {
    let McpListenArgs { connect, resources, count } = args;
    let mut filter = SubscriptionFilter::list_changes();
    if !resources.is_empty() {
        filter = filter.with_resource_subscriptions(resources);
    }
    let count = count.unwrap_or(u64::MAX);
    connect.with_client(async |client| listen(client, filter, count).await).await
}

async fn listen(
    client: &McpClient,
    filter: SubscriptionFilter,
    count: u64,
) -> Result<Exit, CommandError> {
    let changes = client.listen(filter).await;
    let mut changes = changes.map_err(|error| command_error(&error))?;
    output::note(&output::dim("listening"));
    let mut left = count;
    while left > 0 {
        match changes.next().await {
            None => {
                output::note(&output::dim("the server has ended the subscription"));
                return Ok(Exit::Success);
            }
            Some(Err(error)) => return Err(command_error(&error)),
            Some(Ok(change)) => {
                left -= 1;
                let line = RawJson::encode(&as_json(change));
                let line =
                    line.map_err(|error| CommandError::new(Exit::Protocol, error.to_string()))?;
                if !output::item(&line)? {
                    break;
                }
            }
        }
    }
    Ok(Exit::Success)
}

fn as_json(change: ServerNotification) -> Value {
    match change {
        ServerNotification::ToolsChanged => json!({ "changed": "tools" }),
        ServerNotification::PromptsChanged => json!({ "changed": "prompts" }),
        ServerNotification::ResourcesChanged => json!({ "changed": "resources" }),
        ServerNotification::ResourceUpdated { uri } => json!({ "updated": uri }),
        ServerNotification::Lagged(lost) => json!({ "lost": lost }),
        ServerNotification::Resumed => json!({ "resumed": true }),
        ServerNotification::Other { method, params } => {
            json!({ "method": method, "params": params })
        }
        other => json!({ "other": format!("{other:?}") }),
    }
}
