//! `antiphon check-client`: the flags, the output and the exit code of a client check. The crate
//! `antiphon-check` performs the check.

use antiphon_check::client::{self, ClientCheck, ClientFraming, ClientSuite, ClientTransport};
use antiphon_check::{RunEvent, validate_json};
use clap::Args;
use tokio::time::Instant;

use crate::check_options::{ReportArgs, SelectionArgs, explain, interrupted, list};
use crate::exit::{CommandError, Exit};
use crate::output;
use crate::progress_bar::ProgressBar;
use crate::quantity::{Count, MaybeSpan, Span};

/// Check whether a client conforms to JSON-RPC 2.0
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CheckClientArgs {
    /// Start the client with this command, once per scenario. In it, {endpoint} stands for the endpoint
    /// of the server, {address} for its host and port or its path, and {port} for its port
    #[arg(last = true, required_unless_present = "list", value_name = "COMMAND")]
    command: Vec<String>,
    /// Serve the scenarios over this transport
    #[arg(long, value_enum, default_value_t = ClientTransport::Http)]
    over: ClientTransport,
    /// Use this framing for tcp, unix or stdio [default: line]
    #[arg(long, value_enum)]
    framing: Option<ClientFraming>,
    /// Return this result to ordinary calls [default: the params of the call]
    #[arg(long, value_name = "JSON", value_parser = json)]
    result: Option<String>,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    reporting: ReportArgs,
    /// Run this many clients at once
    #[arg(short, long, value_name = "COUNT", default_value_t = Count(1))]
    jobs: Count,
    /// Kill a client that runs longer than this
    #[arg(long, value_name = "TIME", default_value_t = Span(ClientCheck::TIMEOUT))]
    timeout: Span,
    /// Stop the run after this long; 0 or none disables it
    #[arg(long, value_name = "TIME", default_value_t = ClientCheck::BUDGET.into())]
    budget: MaybeSpan,
}

const HELP: &str = "\
The command starts once per scenario, with the scenario's name in ANTIPHON_SCENARIO. The client must
make at least one call, of any method, and exit with 0 if all its calls got results, or with another
code if one did not. More scenarios apply to a client that has two calls in flight or sends batches.

Examples:
  antiphon check-client -- antiphon call {endpoint} subtract 42 23
  antiphon check-client --over ws -- node client.mjs {endpoint}
  antiphon check-client --over tcp -- ./client --host 127.0.0.1 --port {port}
  antiphon check-client --over unix --framing header -- python3 client.py {address}
  antiphon check-client --over stdio --framing header -- node language_client.js
  antiphon check-client --result '\"0x1\"' -- ./wallet chain-id {endpoint}
  antiphon check-client --only errors --only endings -v -- ./client {endpoint}
  antiphon check-client --format junit -- ./client {endpoint} > report.xml
  antiphon check-client --list

In a report, --> marks messages of the server and <-- messages of the client. A client fails if it
treats an error as a result, loses a result, crashes or hangs. It gets a warning if it accepts an
invalid response. Where the specification leaves a choice, the behavior is reported, not scored.

Exit codes:
    0  no failure; with --baseline, no case is worse
    1  a failure; with --baseline, a case is worse
    2  invalid command line
    3  the client does not start
    4  --budget ended the run before all scenarios were run, and none failed
    5  no ordinary call succeeds: the client makes no call, or fails although it gets a result
  130  Ctrl-C, SIGTERM or SIGHUP; running clients are killed too";

fn json(text: &str) -> Result<String, String> {
    validate_json(text).map(|()| text.trim().to_owned())
}

pub(crate) async fn run(args: CheckClientArgs) -> Result<Exit, CommandError> {
    let mut suite = ClientSuite::shipped();
    suite.select(&args.selection.selection())?;
    if args.selection.list {
        return list(suite.summaries());
    }
    let baseline = args.reporting.baseline()?;
    let check = args.client_check();
    let start = Instant::now();
    let bar = ProgressBar::new(suite.summaries().len());
    let run = client::run(&check, &suite, |event| match event {
        RunEvent::Note(text) => output::note(text),
        RunEvent::Case { done, group } => bar.draw(done, group),
        _ => {}
    });
    let run = tokio::select! {
        run = run => run.map_err(|error| {
            explain(&error);
            CommandError::from(error)
        }),
        () = interrupted() => {
            Err(CommandError::new(Exit::Interrupted, "interrupted before all scenarios were run"))
        }
    };
    bar.clear();
    let run = run?;
    let facts = vec![("client", shell_words::join(&args.command)), ("over", check.wire_name())];
    let exit = args.reporting.report(baseline.as_ref(), facts, start.elapsed(), run.results)?;
    if run.is_late && exit == Exit::Success {
        return Err(CommandError::new(
            Exit::Timeout,
            "the time limit was reached before all scenarios were run",
        )
        .hint("--budget 10m allows more time"));
    }
    Ok(exit)
}

impl CheckClientArgs {
    fn client_check(&self) -> ClientCheck {
        ClientCheck {
            command: self.command.clone(),
            transport: self.over,
            framing: self.framing,
            result: self.result.clone(),
            jobs: self.jobs.0,
            timeout: self.timeout.0,
            budget: self.budget.0,
        }
    }
}
