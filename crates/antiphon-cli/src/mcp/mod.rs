//! `antiphon mcp`: commands for the Model Context Protocol, one file each.

mod ask_user;
mod bridge;
mod call;
mod complete;
mod connect;
mod content;
mod failure;
mod form_field;
mod list;
mod listen;
mod login;
mod prompt;
mod read;
mod serve;
mod serving;
mod tokens;

use clap::{Args, Subcommand};

use crate::exit::{CommandError, Exit};

/// Use and serve tools, resources and prompts of the Model Context Protocol
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    List(Box<list::McpListArgs>),
    Call(Box<call::McpCallArgs>),
    Read(Box<read::McpReadArgs>),
    Prompt(Box<prompt::McpPromptArgs>),
    Complete(Box<complete::McpCompleteArgs>),
    Listen(Box<listen::McpListenArgs>),
    Login(Box<login::McpLoginArgs>),
    Logout(login::McpLogoutArgs),
    Serve(Box<serve::McpServeArgs>),
    Bridge(Box<bridge::McpBridgeArgs>),
}

impl McpArgs {
    /// Returns the log level without `--log`.
    pub(crate) fn log_level(&self) -> &'static str {
        match self.command {
            McpCommand::Serve(_) | McpCommand::Bridge(_) => "warn",
            _ => "error",
        }
    }
}

pub(crate) async fn run(args: McpArgs) -> Result<Exit, CommandError> {
    match args.command {
        McpCommand::List(args) => list::run(*args).await,
        McpCommand::Call(args) => call::run(*args).await,
        McpCommand::Read(args) => read::run(*args).await,
        McpCommand::Prompt(args) => prompt::run(*args).await,
        McpCommand::Complete(args) => complete::run(*args).await,
        McpCommand::Listen(args) => listen::run(*args).await,
        McpCommand::Login(args) => login::run(*args).await,
        McpCommand::Logout(args) => login::logout(&args),
        McpCommand::Serve(args) => serve::run(*args).await,
        McpCommand::Bridge(args) => bridge::run(*args).await,
    }
}
