//! `antiphon mcp complete`: the completions of an argument.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};

use antiphon_mcp::types::Reference;
use clap::Args;

use super::connect::McpConnectArgs;
use super::failure::command_error;
use crate::exit::{CommandError, Exit};
use crate::output;

/// Suggest values for an argument of a prompt or a variable of a resource template
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpCompleteArgs {
    #[command(flatten)]
    connect: McpConnectArgs,
    /// Name of the prompt, or URI template of the resources
    reference: String,
    /// Name of the argument or variable
    argument: String,
    /// What has been typed so far
    #[arg(default_value = "")]
    value: String,
    /// Another argument that is known already [repeatable]
    #[arg(long, value_name = "NAME=TEXT", value_parser = known)]
    with: Vec<(String, String)>,
}

const EXAMPLES: &str = "\
Examples:
  antiphon mcp complete http://127.0.0.1:8651/mcp review language ru
  antiphon mcp complete http://127.0.0.1:8651/mcp 'user://{id}' id 1

Each line of the output is one completion.";

fn known(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("use NAME=TEXT")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) async fn run(args: McpCompleteArgs) -> Result<Exit, CommandError> {
    let McpCompleteArgs { connect, reference, argument, value, with } = args;
    // A template has a scheme, and a prompt has none.
    let reference = match reference.contains(':') {
        true => Reference::resource(reference),
        false => Reference::prompt(reference),
    };
    let known: BTreeMap<_, _> = with.into_iter().collect();
    connect
        .with_client(async |client| {
            let result = client.complete(reference, &argument, &value, known).await;
            let result = result.map_err(|error| command_error(&error))?;
            let shown = match io::stdout().is_terminal() {
                true => output::visible,
                false => output::without_controls,
            };
            for value in &result.completion.values {
                output::line(&shown(value))?;
            }
            if result.completion.has_more == Some(true) {
                output::note("there are more completions");
            }
            Ok(Exit::Success)
        })
        .await
}
