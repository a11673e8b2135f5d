//! The command line. The flags of each command are in the file of that command.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

use crate::log::LogArgs;
use crate::openrpc::{describe, list};
use crate::{
    batch, bench, call, check, check_client, completions, exit, mcp, notify, serve, session,
    subscribe,
};

/// Call, serve, check and measure JSON-RPC 2.0 endpoints over any transport
#[derive(Debug, Parser)]
#[command(name = "antiphon", version, styles = STYLES, after_help = help())]
#[command(max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::ServeArgs),
    Call(call::CallArgs),
    Notify(notify::NotifyArgs),
    Batch(batch::BatchArgs),
    Subscribe(subscribe::SubscribeArgs),
    Session(session::SessionArgs),
    List(list::ListArgs),
    Describe(describe::DescribeArgs),
    Check(check::CheckArgs),
    CheckClient(check_client::CheckClientArgs),
    Mcp(mcp::McpArgs),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

fn help() -> String {
    format!("{EXAMPLES}\n\n{ENDPOINTS}\n\n{VALUES}\n\n{}", exit::HELP)
}

const EXAMPLES: &str = "\
Examples:
  antiphon serve                   # a demo server on http://127.0.0.1:8650
  antiphon call http://127.0.0.1:8650 subtract 42 23
  antiphon call ws://127.0.0.1:8650 subtract minuend:=42 subtrahend:=23
  antiphon notify unix:/run/app.sock reload
  antiphon call 'exec:antiphon serve stdio:' sum 1 2     # start a process
  antiphon batch http://127.0.0.1:8650 < calls.ndjson
  antiphon subscribe ws://127.0.0.1:8650 subscribe_ticks 100 --count 5
  antiphon session ws://127.0.0.1:8650     # several calls, with a prompt
  antiphon list http://127.0.0.1:8650                    # its methods
  antiphon describe http://127.0.0.1:8650 subtract       # one method
  antiphon check http://127.0.0.1:8650                   # test a server
  antiphon check-client -- ./my-client {endpoint}        # test a client
  antiphon mcp serve --from http://127.0.0.1:8650        # as MCP tools
  antiphon bench ws://127.0.0.1:8650 subtract 42 23 -c 64 -f 16";

const ENDPOINTS: &str = "\
Endpoints:
  http://HOST:PORT/PATH      HTTP; a server accepts WebSockets on the same port
  ws://HOST:PORT/PATH        WebSocket
  tcp://HOST:PORT            a raw TCP stream
  https://, wss://, tls://   HTTP, WebSocket and TCP over TLS
  unix:/PATH                 a Unix domain socket
  stdio:                     stdin and stdout of this process (serve only)
  exec:COMMAND ARGS          stdin and stdout of a child process (clients only)

  tcp, tls, unix, stdio and exec accept a framing, as in tcp+header://HOST:PORT:
    +line     one message per line (the default of a client)
    +header   a Content-Length header before each message, as in LSP
    +values   JSON values one after another, without a separator
  A server without a framing detects it for each connection.";

const VALUES: &str = "\
Values:
  SIZE   bytes, with an optional unit of 1024: 65536, 64k, 32M, 1GiB
  TIME   500ms, 30s, 2m, 1h; a number without a unit is in seconds";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn clap_accepts_the_definition() {
        super::Cli::command().debug_assert();
    }
}
