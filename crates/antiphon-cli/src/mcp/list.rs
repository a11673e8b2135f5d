//! `antiphon mcp list`: what a server offers.

use std::io::{self, IsTerminal as _};

use antiphon::RawJson;
use antiphon_mcp::client::McpClient;
use antiphon_mcp::types::{JsonObject, Tool};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::connect::McpConnectArgs;
use super::failure::command_error;
use crate::exit::{CommandError, Exit};
use crate::openrpc::table;
use crate::output;

/// List the tools, resources and prompts of a server
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpListArgs {
    #[command(flatten)]
    connect: McpConnectArgs,
    /// List tools [default: everything]
    #[arg(long)]
    tools: bool,
    /// List resources and resource templates
    #[arg(long)]
    resources: bool,
    /// List prompts
    #[arg(long)]
    prompts: bool,
    /// Print each entry as the server describes it, one JSON object per line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  antiphon mcp list 'exec:npx -y @modelcontextprotocol/server-everything'
  antiphon mcp list https://mcp.example/mcp --tools
  antiphon mcp list http://127.0.0.1:8651/mcp --json | jq .name

On a terminal, the output is a table. Elsewhere, each line has four fields with
tabs between them: kind, name or URI, arguments or MIME type, description.";

/// One line of the list.
struct Entry {
    kind: &'static str,
    name: String,
    arguments: String,
    description: String,
    json: RawJson,
}

pub(super) async fn run(args: McpListArgs) -> Result<Exit, CommandError> {
    let McpListArgs { connect, tools, resources, prompts, json } = args;
    let all = !(tools || resources || prompts);
    connect
        .with_client(async |client| {
            let mut entries = Vec::new();
            let mut failed = Exit::Success;
            let capabilities = client.server_capabilities();
            if (all || tools) && capabilities.tools.is_some() {
                entries.extend(or_report("tools", list_tools(client).await, &mut failed)?);
            }
            if (all || resources) && capabilities.resources.is_some() {
                let listed = list_resources(client).await;
                entries.extend(or_report("resources", listed, &mut failed)?);
            }
            if (all || prompts) && capabilities.prompts.is_some() {
                entries.extend(or_report("prompts", list_prompts(client).await, &mut failed)?);
            }
            show(&entries, json)?;
            Ok(failed)
        })
        .await
}

/// Returns the list. If the server has replied with an error, reports it and returns none: the other lists are printed.
fn or_report(
    kind: &str,
    listed: Result<Vec<Entry>, CommandError>,
    failed: &mut Exit,
) -> Result<Vec<Entry>, CommandError> {
    match listed {
        Err(failure) if failure.exit == Exit::PeerError => {
            *failed = failure.about(&format!("cannot list the {kind}")).report();
            Ok(Vec::new())
        }
        listed => listed,
    }
}

async fn list_tools(client: &McpClient) -> Result<Vec<Entry>, CommandError> {
    let tools = client.list_tools().await.map_err(|error| command_error(&error))?;
    tools
        .iter()
        .map(|tool| {
            let description = tool.description.as_deref().or(tool.title.as_deref());
            entry("tool", &tool.name, arguments(tool), description, tool)
        })
        .collect()
}

async fn list_resources(client: &McpClient) -> Result<Vec<Entry>, CommandError> {
    let resources = client.list_resources().await.map_err(|error| command_error(&error))?;
    let described = resources.iter().map(|it| {
        let description = it.description.as_deref().or(Some(&it.name));
        entry("resource", &it.uri, it.mime_type.clone().unwrap_or_default(), description, it)
    });
    let mut entries = described.collect::<Result<Vec<_>, _>>()?;
    // Servers of old revisions may have no templates.
    for it in client.list_resource_templates().await.unwrap_or_default() {
        let description = it.description.as_deref().or(Some(&it.name));
        let mime_type = it.mime_type.clone().unwrap_or_default();
        entries.push(entry("template", &it.uri_template, mime_type, description, &it)?);
    }
    Ok(entries)
}

async fn list_prompts(client: &McpClient) -> Result<Vec<Entry>, CommandError> {
    let prompts = client.list_prompts().await.map_err(|error| command_error(&error))?;
    let described = prompts.iter().map(|prompt| {
        let names = prompt.arguments.iter().flatten().map(|argument| {
            let optional = if argument.required == Some(true) { "" } else { "?" };
            format!("{}{optional}", argument.name)
        });
        let names = names.collect::<Vec<_>>().join(", ");
        entry("prompt", &prompt.name, names, prompt.description.as_deref(), prompt)
    });
    described.collect()
}

fn entry(
    kind: &'static str,
    name: &str,
    arguments: String,
    description: Option<&str>,
    json: &impl Serialize,
) -> Result<Entry, CommandError> {
    let json = RawJson::encode(json);
    let json = json.map_err(|error| CommandError::new(Exit::Protocol, error.to_string()))?;
    let description = description.unwrap_or_default().lines().next().unwrap_or_default();
    Ok(Entry { kind, name: name.to_owned(), arguments, description: description.to_owned(), json })
}

/// The names of the arguments of a tool; optional ones with a question mark.
pub(super) fn arguments(tool: &Tool) -> String {
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|it| it == name));
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(JsonObject::keys).map(|name| {
        let optional = if is_required(name) { "" } else { "?" };
        format!("{name}{optional}")
    });
    names.collect::<Vec<_>>().join(", ")
}

fn show(entries: &[Entry], as_json: bool) -> Result<(), CommandError> {
    if as_json {
        for entry in entries {
            if !output::item(&entry.json)? {
                break;
            }
        }
        return Ok(());
    }
    let lines = match io::stdout().is_terminal() {
        true => table::aligned(&entries.iter().map(for_people).collect::<Vec<_>>()),
        false => entries.iter().map(for_programs).collect(),
    };
    if !lines.is_empty() {
        output::line(&lines.join("\n"))?;
    }
    Ok(())
}

fn for_people(entry: &Entry) -> Vec<String> {
    let signature = match (entry.kind, entry.arguments.as_str()) {
        ("tool" | "prompt", arguments) => format!("{}({arguments})", entry.name),
        _ => entry.name.clone(),
    };
    vec![entry.kind.to_owned(), signature, entry.description.clone()]
}

fn for_programs(entry: &Entry) -> String {
    let fields = [entry.kind, &entry.name, &entry.arguments, &entry.description];
    fields.map(table::field).join("\t")
}
