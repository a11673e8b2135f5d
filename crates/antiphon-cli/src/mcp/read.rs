//! `antiphon mcp read`: the content of a resource.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use antiphon_mcp::types::ResourceContents;
use clap::Args;

use super::connect::McpConnectArgs;
use super::content;
use super::failure::{command_error, unknown_name};
use crate::exit::{CommandError, Exit};
use crate::output;

/// Read a resource and print its content
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpReadArgs {
    #[command(flatten)]
    connect: McpConnectArgs,
    /// URI of the resource
    uri: String,
    /// Write the content to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  antiphon mcp read http://127.0.0.1:8651/mcp config://app
  antiphon mcp read https://mcp.example/mcp file:///logo.png -o logo.png

Text is written to stdout unchanged. Binary content is written to a pipe or a
file, but not to a terminal.";

pub(super) async fn run(args: McpReadArgs) -> Result<Exit, CommandError> {
    let McpReadArgs { connect, uri, output } = args;
    connect
        .with_client(async |client| {
            let result = match client.read_resource(&uri).await {
                Ok(result) => result,
                Err(error) if error.as_rpc().is_none() => return Err(command_error(&error)),
                Err(error) => {
                    let known = client.list_resources().await.unwrap_or_default();
                    let uris: Vec<_> = known.iter().map(|it| it.uri.clone()).collect();
                    return Err(unknown_name(command_error(&error), &uri, &uris));
                }
            };
            match output {
                Some(path) => to_file(&result.contents, &path)?,
                None => result.contents.iter().try_for_each(print)?,
            }
            Ok(Exit::Success)
        })
        .await
}

fn print(contents: &ResourceContents) -> Result<(), CommandError> {
    if !io::stdout().is_terminal() {
        return to_stdout(&bytes(contents)?);
    }
    output::line(&output::visible(&content::describe_resource(contents)))?;
    match &contents.text {
        Some(_) => Ok(()),
        None => Err(CommandError::usage("binary content is not printed on a terminal")
            .hint("-o FILE writes it to a file")),
    }
}

/// Writes all contents of a resource to one file, one after the other.
fn to_file(contents: &[ResourceContents], path: &Path) -> Result<(), CommandError> {
    let bytes = contents.iter().map(bytes).collect::<Result<Vec<_>, _>>()?.concat();
    std::fs::write(path, bytes)
        .map_err(|error| CommandError::usage(format!("cannot write {}: {error}", path.display())))
}

fn bytes(contents: &ResourceContents) -> Result<Vec<u8>, CommandError> {
    match &contents.text {
        Some(text) => Ok(text.clone().into_bytes()),
        None => contents.bytes().map_err(|error| {
            CommandError::new(Exit::Protocol, format!("the content is not base64: {error}"))
        }),
    }
}

fn to_stdout(bytes: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::new(Exit::Transport, format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
