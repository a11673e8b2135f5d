//! `antiphon session`: several calls on one connection, from a script or at a prompt.
//!
//! `--init`, a flag of `call` and other commands, takes the same lines.

mod executor;
mod inbox;
mod interactive;
mod line;
mod report;
mod script;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use tokio::signal::ctrl_c;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

pub(crate) use self::inbox::Inbox;
use self::interactive::Interactive;
pub(crate) use self::line::Variables;
use self::report::{Report, SessionFormat};
use self::script::Script;
use crate::answers::{Incoming, Listener, UnansweredCall};
use crate::connect::ConnectArgs;
use crate::exit::{CommandError, Exit};
use crate::open_connection::OpenConnection;
use crate::openrpc::discovery::SchemaArgs;
use crate::quantity::Span;

/// Make several calls on one connection, from a script or at a prompt
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Lines to run [default: the lines of stdin, or a prompt if stdin is a terminal]
    #[arg(value_name = "LINE")]
    lines: Vec<String>,
    /// Run the lines of this file
    #[arg(short, long, value_name = "FILE", conflicts_with = "lines")]
    file: Option<PathBuf>,
    /// Continue after an error; the exit code is the highest code of all lines
    #[arg(long)]
    keep_going: bool,
    /// Print in this format
    #[arg(long, value_enum, default_value_t = SessionFormat::Text, value_name = "FORMAT")]
    format: SessionFormat,
    /// Hide notifications and calls from the server
    #[arg(short, long)]
    quiet: bool,
    /// Fail if the whole script takes longer than this; --timeout applies to each line
    #[arg(long, value_name = "TIME")]
    max_time: Option<Span>,
    /// Answer calls from the server by hand at the prompt if no rule matches
    #[arg(long)]
    ask: bool,
    /// Neither read nor write the history of the prompt
    #[arg(long)]
    no_history: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

const EXAMPLES: &str = "\
Examples:
  antiphon session ws://127.0.0.1:8650                     # a prompt
  antiphon session ws://127.0.0.1:8650 'a = sum 1 2' 'subtract $a 1'
  antiphon session unix:/run/app.sock --file calls.txt | jq .
  antiphon session ws://127.0.0.1:8650 --format json < calls.txt
  antiphon session --dialect lsp exec:clangd 'open main.c' \\
      'wait textDocument/publishDiagnostics' \\
      'textDocument/hover --at main.c:3:5'
  antiphon session --dialect ethereum ws://127.0.0.1:8546 \\
      'tip = eth_getBlockByNumber latest false' \\
      'eth_getBlockByHash $tip.hash false'";

/// The grammar of lines, for `--help` and the command `help`.
const GRAMMAR: &str = "\
Lines:
  METHOD [PARAM...]         call; the params are those of `antiphon call`
  METHOD --at FILE:L:C      call with a document and a position (--dialect lsp)
  NAME = METHOD [PARAM...]  store the result of a call, `wait` or `open`
  $NAME  $NAME.a.b[0]       print a stored result; `$_` is the last result
  notify METHOD [PARAM...]  send a notification
  wait METHOD [NAME=TEXT...] [TIME]
                            print the params of the oldest notification or
                            call with this METHOD that no other wait has used;
                            wait until one arrives
  clear                     discard received messages, so `wait` ignores them
  answer METHOD=JSON        answer later calls from the server, like --answer
  reply JSON                answer the oldest waiting call by hand (--ask)
  reply !CODE MESSAGE       answer it with an error
  open FILE                 open a document, or send its new text
  call METHOD [PARAM...]    call a method whose name is also a command
  vars, help, exit          list the variables, show this help, end the session

Words:
  'text' \"text\" \\c           quotes as in a shell; $NAME works inside \"...\"
  {\"a\": [1, $NAME.b]}       JSON needs no quotes, and may contain variables,
                            but not inside its Strings
  a=$NAME                   a named param, as a String
  a:=$NAME                  a named param, as JSON
  ${NAME}.txt               a variable inside text
  # text                    a comment";

const OUTPUT: &str = "\
Output:
  Each result is one line on stdout, unless it is stored. Messages from the
  server go to stderr. With --format json, all of these go to stdout:
    {\"line\":1,\"kind\":\"result\",\"method\":\"sum\",\"result\":3}
  The kinds are result, error, failure, notification and call. A script stops at
  the first error and exits with its code, unless --keep-going is set.";

fn help() -> String {
    format!("{EXAMPLES}\n\n{GRAMMAR}\n\n{OUTPUT}")
}

/// The maximum number of calls that wait for an answer by hand. Further calls get -32601.
const MOST_UNANSWERED: usize = 16;

pub(crate) async fn run(args: SessionArgs) -> Result<Exit, CommandError> {
    let script = args.script()?;
    if let Some(script) = &script {
        script.check()?;
    }
    let report = Report {
        format: args.format,
        // --verbose already shows them.
        shows_incoming: !args.quiet
            && (args.format == SessionFormat::Json || !args.connect.is_verbose()),
    };
    if args.ask && script.is_some() {
        return Err(CommandError::usage("--ask needs a prompt, but this session runs a script")
            .hint("answer with rules instead: --answer METHOD=JSON"));
    }
    let (by_hand, unanswered) = channel(MOST_UNANSWERED);
    let listener = Listener {
        observe: Box::new(move |incoming: Incoming<'_>| report.incoming(incoming)),
        by_hand: args.ask.then_some(by_hand),
    };
    let mut connection = args.connect.connect(None, Some(listener)).await?;
    let exit = match script {
        Some(script) => args.run_script(script, &mut connection, report).await,
        None => args.run_prompt(&mut connection, report, unanswered).await,
    };
    let exit = exit.unwrap_or_else(CommandError::report);
    args.connect.close(connection).await;
    Ok(exit)
}

impl SessionArgs {
    /// Returns the script; `None` for a prompt.
    fn script(&self) -> Result<Option<Script>, CommandError> {
        match &self.file {
            Some(path) => Script::of_file(path).map(Some),
            None if !self.lines.is_empty() => Ok(Some(Script::of_lines(&self.lines))),
            None if io::stdin().is_terminal() => Ok(None),
            None => Ok(Some(Script::of_stdin())),
        }
    }

    async fn run_prompt(
        &self,
        connection: &mut OpenConnection,
        report: Report,
        unanswered: Receiver<UnansweredCall>,
    ) -> Result<Exit, CommandError> {
        let keeps_history = !self.no_history;
        let interactive =
            Interactive { connect: &self.connect, schema: &self.schema, report, keeps_history };
        match interactive.run(connection, unanswered).await? {
            Some(exit) => Ok(exit),
            // A terminal without line editing, such as TERM=dumb.
            None => self.run_script(Script::of_stdin(), connection, report).await,
        }
    }

    /// Runs a script until it ends, `--max-time` has passed, or Ctrl-C is pressed.
    async fn run_script(
        &self,
        script: Script,
        connection: &mut OpenConnection,
        report: Report,
    ) -> Result<Exit, CommandError> {
        let run = script.run(connection, &self.connect, report, self.keep_going);
        let in_time = async {
            let Some(Span(limit)) = self.max_time else { return run.await };
            timeout(limit, run).await.unwrap_or_else(|_| {
                let what = format!("the script took longer than {}", Span(limit));
                Err(CommandError::new(Exit::Timeout, what).hint("--max-time 10m allows more"))
            })
        };
        tokio::select! {
            exit = in_time => exit,
            _ = ctrl_c() => Ok(Exit::Interrupted),
        }
    }
}

/// Runs the lines of `--init`. Each value is a line, or `@FILE` with several lines.
pub(crate) async fn run_init(
    connection: &mut OpenConnection,
    init: &[String],
) -> Result<(), CommandError> {
    for (number, text) in (1..).zip(init) {
        let script = match text.strip_prefix('@') {
            Some(path) => Script::of_file(Path::new(path))?,
            None => Script::of_line(number, text),
        };
        let ran = script.run_silently(connection).await;
        ran.map_err(|failure| failure.about("--init"))?;
    }
    Ok(())
}
