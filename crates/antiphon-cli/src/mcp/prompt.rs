//! `antiphon mcp prompt`: the messages of a prompt.

use std::io::{self, IsTerminal as _};

use antiphon::RawJson;
use clap::Args;

use super::connect::McpConnectArgs;
use super::content;
use super::failure::{command_error, unknown_name};
use crate::exit::{CommandError, Exit};
use crate::output;

/// Get a prompt and print its messages
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpPromptArgs {
    #[command(flatten)]
    connect: McpConnectArgs,
    /// Name of the prompt
    prompt: String,
    /// Arguments, such as language=rust
    #[arg(value_name = "NAME=TEXT", value_parser = argument)]
    arguments: Vec<(String, String)>,
    /// Print the result as JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  antiphon mcp prompt http://127.0.0.1:8651/mcp review language=rust
  antiphon mcp prompt 'exec:my-server' summary --json | jq .messages";

fn argument(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("use NAME=TEXT, such as language=rust")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) async fn run(args: McpPromptArgs) -> Result<Exit, CommandError> {
    let McpPromptArgs { connect, prompt, arguments, json } = args;
    connect
        .with_client(async |client| {
            let result = match client.get_prompt(&prompt, arguments).await {
                Ok(result) => result,
                Err(error) if error.as_rpc().is_none() => return Err(command_error(&error)),
                Err(error) => {
                    let known = client.list_prompts().await.unwrap_or_default();
                    let names: Vec<_> = known.iter().map(|it| it.name.clone()).collect();
                    return Err(unknown_name(command_error(&error), &prompt, &names));
                }
            };
            if json || !io::stdout().is_terminal() {
                let encoded = RawJson::encode(&result);
                let encoded = encoded
                    .map_err(|error| CommandError::new(Exit::Protocol, error.to_string()))?;
                output::result(&encoded)?;
                return Ok(Exit::Success);
            }
            for message in &result.messages {
                let role = format!("{:?}", message.role).to_lowercase();
                let text = format!("{role}: {}", content::describe(&message.content));
                output::line(&output::visible(&text))?;
            }
            Ok(Exit::Success)
        })
        .await
}
