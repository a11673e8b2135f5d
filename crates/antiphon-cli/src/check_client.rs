//! `antiphon check-client`: does a client keep to JSON-RPC 2.0? The suite is `antiphon-check`.

use antiphon_check::client::{self, ClientCheck, ClientFraming, ClientSuite, ClientTransport};
use antiphon_check::{RunEvent, validate_json};
use clap::Args;
use tokio::time::Instant;

use crate::check_options::{ReportArgs, SelectionArgs, explain, interrupted, list};
use crate::exit::{CommandError, Exit};
use crate::output;
use crate::progress_bar::ProgressBar;
use crate::quantity::{Count, MaybeSpan, Span};

/// Judge whether a client keeps to JSON-RPC 2.0, whatever it is written in
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CheckClientArgs {
    /// The client, which is run once a scenario; {endpoint} stands for where the server is, {address}
    /// for its host and port or its path, {port} for its port
    #[arg(last = true, required_unless_present = "list", value_name = "COMMAND")]
    command: Vec<String>,
    /// The wire that it is served on
    #[arg(long, value_enum, default_value_t = ClientTransport::Http)]
    over: ClientTransport,
    /// How messages lie on a raw stream: tcp, unix or stdio [default: line]
    #[arg(long, value_enum)]
    framing: Option<ClientFraming>,
    /// What ordinary calls get as their result, for clients that look at it; else their own params
    #[arg(long, value_name = "JSON", value_parser = json)]
    result: Option<String>,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    reporting: ReportArgs,
    /// How many clients to run at once
    #[arg(short, long, value_name = "COUNT", default_value_t = Count(1))]
    jobs: Count,
    /// How long the client may take for one scenario
    #[arg(long, value_name = "TIME", default_value_t = Span(ClientCheck::TIMEOUT))]
    timeout: Span,
    /// How long the whole run may take; 0 or none for ever
    #[arg(long, value_name = "TIME", default_value_t = ClientCheck::BUDGET.into())]
    budget: MaybeSpan,
}

const HELP: &str = "\
The client is started once for each scenario, with the name of it in ANTIPHON_SCENARIO. It makes
at least one call, whatever the method, and exits with 0 if its calls had results and with another
code if one had not. A client that can have two calls in flight, or send a batch, is asked more.

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

In a report --> is what the server said, and <-- what the client did.
What a client must not do, such as take an error for a result or wait for a server that is gone,
is a failure; what it should not do is a warning; where it is free, it is told what it does, and
not judged. A client that dies of a signal fails, whatever was said.

Exit codes:
    0  no failure; with --baseline, nothing is worse
    1  a failure; with --baseline, something is worse
    2  the command line makes no sense
    3  the client does not start
    4  the time was up before all was run, and nothing failed
    5  the client makes no call, or fails where it gets a result, so that nothing can be judged
  130  Ctrl-C, SIGTERM or SIGHUP: the clients that run have been ended, too";

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
            "the time was up before all scenarios were run",
        )
        .hint("--budget 10m gives more"));
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
