//! What the command line looks like. Each command keeps its own flags in its own file.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

use crate::log::LogArgs;
use crate::openrpc::{describe, list};
use crate::{batch, bench, call, check, check_client, completions, exit, notify, serve, subscribe};

/// Call, serve, check and measure any JSON-RPC 2.0 endpoint, over any wire
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
    List(list::ListArgs),
    Describe(describe::DescribeArgs),
    Check(check::CheckArgs),
    CheckClient(check_client::CheckClientArgs),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

fn help() -> String {
    format!("{EXAMPLES}\n\n{ENDPOINTS}\n\n{}", exit::HELP)
}

const EXAMPLES: &str = "\
Examples:
  antiphon serve                                    a server to try, on http://127.0.0.1:8650
  antiphon call http://127.0.0.1:8650 subtract 42 23
  antiphon call ws://127.0.0.1:8650 subtract minuend:=42 subtrahend:=23
  antiphon notify unix:/run/app.sock reload
  antiphon call exec+header:clangd initialize processId:=null rootUri:=null capabilities:={}
  antiphon batch http://127.0.0.1:8650 < calls.ndjson
  antiphon subscribe ws://127.0.0.1:8650 subscribe_ticks 100 --count 5
  antiphon list http://127.0.0.1:8650                what it says that it can do
  antiphon describe http://127.0.0.1:8650 subtract
  antiphon check http://127.0.0.1:8650               does it keep to the specification?
  antiphon check-client -- ./my-client {endpoint}    and does this client?
  antiphon bench ws://127.0.0.1:8650 subtract 42 23 -c 64 -f 16";

const ENDPOINTS: &str = "\
Endpoints:
  http://host:port/path    HTTP; a server takes WebSockets on the same port
  ws://host:port/path      WebSocket
  tcp://host:port          a raw stream
  https://, wss://, tls:// the same by TLS
  unix:/path               a Unix socket
  stdio:                   this process's stdin and stdout (serve only)
  exec:command args        a child process's stdin and stdout (every command that calls)
  A raw stream may name its framing: tcp+header://host:port, exec+header:clangd, stdio+line:
  `line` is one message a line, `header` is Content-Length as language servers speak it, `values`
  is JSON values that follow each other.
  Without one, a server finds out, and a caller uses `line`.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
