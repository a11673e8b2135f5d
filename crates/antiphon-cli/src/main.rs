//! The `antiphon` command: call, serve, check and measure JSON-RPC endpoints.

mod answers;
mod auth_cookie;
mod batch;
mod bench;
mod call;
mod check;
mod check_client;
mod check_options;
mod cli;
mod completions;
mod connect;
mod demo;
mod dialect;
mod endpoint;
mod exit;
mod handshake;
mod limits;
mod log;
mod mcp;
mod middleware;
mod notify;
mod open_connection;
mod openrpc;
mod output;
mod params;
mod progress_bar;
mod prompt_printer;
mod quantity;
mod request_headers;
mod secret;
mod serve;
mod session;
mod subscribe;
mod tls;
mod waiting_line;

use std::process::ExitCode;

use clap::Parser as _;
use tokio::runtime::Builder;

use crate::cli::{Cli, Command};
use crate::exit::{CommandError, Exit};

fn main() -> ExitCode {
    let cli = Cli::parse();
    // A client reports its own error. A server also logs warnings by default.
    let level = match &cli.command {
        Command::Serve(_) => "warn",
        Command::Mcp(args) => args.log_level(),
        _ => "error",
    };
    let is_traced = matches!(&cli.command, Command::Serve(args) if args.is_traced());
    log::init(&cli.log, level, is_traced);
    run(cli.command).unwrap_or_else(CommandError::report).into()
}

fn run(command: Command) -> Result<Exit, CommandError> {
    match command {
        Command::Completions(args) => in_runtime(completions::run(args)),
        Command::Serve(args) => in_runtime(serve::run(args)),
        Command::Call(args) => in_runtime(call::run(args)),
        Command::Notify(args) => in_runtime(notify::run(args)),
        Command::Batch(args) => in_runtime(batch::run(args)),
        Command::Subscribe(args) => in_runtime(subscribe::run(args)),
        Command::Session(args) => in_runtime(session::run(args)),
        Command::List(args) => in_runtime(openrpc::list::run(args)),
        Command::Describe(args) => in_runtime(openrpc::describe::run(args)),
        Command::Check(args) => in_runtime(check::run(args)),
        Command::CheckClient(args) => in_runtime(check_client::run(args)),
        Command::Mcp(args) => in_runtime(mcp::run(args)),
        Command::Bench(args) => in_runtime(bench::run(args)),
    }
}

/// Runs a command on one thread. A server and a load generator start more threads themselves.
fn in_runtime(
    work: impl Future<Output = Result<Exit, CommandError>>,
) -> Result<Exit, CommandError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
        CommandError::new(Exit::Transport, format!("cannot start the async runtime: {error}"))
    })?;
    let exit = runtime.block_on(Box::pin(work));
    // A thread that blocks on stdin cannot be cancelled, so the process does not wait for it.
    runtime.shutdown_background();
    exit
}
