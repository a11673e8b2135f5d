//! `antiphon check-client`: does a client keep to JSON-RPC 2.0, whoever wrote it?
//!
//! It is served scenarios, and judged by what it sends and how it ends. The server here is none of
//! the library's: what it says must be able to be wrong, so it is written by hand, byte by byte.

mod asked;
mod connection;
mod judge;
mod observed;
mod over;
mod play;
mod process;
mod record;
mod run;
mod scenario;
mod scenarios;
mod stage;
mod wire;

use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use self::over::{Framing, Over, Place};
use self::run::Run;
use self::stage::Stage;
use crate::check::transcript::json::Json;
use crate::check::{Bar, Reporting, Selection, interrupted, list};
use crate::exit::{Exit, Failure};
use crate::quantity::{Count, MaybeSpan, Span};

const LIMIT: Duration = Duration::from_secs(10);
const BUDGET: Duration = Duration::from_secs(300);

/// Judge whether a client keeps to JSON-RPC 2.0, whatever it is written in
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CheckClientArgs {
    /// The client, which is run once a scenario; {endpoint} stands for where the server is, {address}
    /// for its host and port or its path, {port} for its port
    #[arg(last = true, required_unless_present = "list", value_name = "COMMAND")]
    command: Vec<String>,
    /// The wire that it is served on
    #[arg(long, value_enum, default_value_t = Over::Http)]
    over: Over,
    /// How messages lie on a raw stream: tcp, unix or stdio [default: line]
    #[arg(long, value_enum)]
    framing: Option<Framing>,
    /// What ordinary calls get as their result, for clients that look at it; else their own params
    #[arg(long, value_name = "JSON", value_parser = json)]
    result: Option<String>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    reporting: Reporting,
    /// How many clients to run at once
    #[arg(short, long, value_name = "COUNT", default_value_t = Count(1))]
    jobs: Count,
    /// How long the client may take for one scenario
    #[arg(long, value_name = "TIME", default_value_t = Span(LIMIT))]
    timeout: Span,
    /// How long the whole run may take; 0 or none for ever
    #[arg(long, value_name = "TIME", default_value_t = BUDGET.into())]
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
    Json::parse(text).map(|json| json.text().to_owned())
}

pub(crate) async fn run(args: CheckClientArgs) -> Result<Exit, Failure> {
    let mut entries = scenarios::entries();
    args.selection.select(&mut entries, |entry| {
        let about = entry.about();
        (about.group, about.name, about.level)
    })?;
    if args.selection.list {
        let abouts = entries.iter().map(scenarios::Entry::about);
        return list(abouts.map(|about| (about.group, about.name, about.level, about.title)));
    }
    let known = args.reporting.known()?;
    let facts = args.facts();
    let begun = Instant::now();
    let deadline = args.budget.0.and_then(|budget| begun.checked_add(budget));
    let run = Run { stage: args.stage()?, deadline, jobs: args.jobs.0 };
    let bar = Bar::new(entries.len());
    let judged = tokio::select! {
        judged = run.judge(&entries, |done, group| bar.draw(done, group)) => judged,
        () = interrupted() => {
            Err(Failure::new(Exit::Interrupted, "interrupted before all scenarios were run"))
        }
    };
    bar.clear();
    let (judged, is_late) = judged?;
    let exit = args.reporting.tell(known.as_ref(), facts, begun.elapsed(), judged)?;
    if is_late && exit == Exit::Success {
        return Err(Failure::new(Exit::Timeout, "the time was up before all scenarios were run")
            .hint("--budget 10m gives more"));
    }
    Ok(exit)
}

impl CheckClientArgs {
    fn stage(&self) -> Result<Stage, Failure> {
        if self.over != Over::Stdio && !Place::is_wanted(&self.command) {
            return Err(Failure::usage("the command does not say where the server is").hint(
                "write {endpoint} where the client takes it, as in: -- ./client {endpoint}",
            ));
        }
        let wire = self.over.wire(self.framing).ok_or_else(|| {
            let over = self.over.name();
            Failure::usage(format!("{over} says by itself how messages lie on it"))
                .hint("--framing is for --over tcp, unix and stdio")
        })?;
        Ok(Stage {
            argv: self.command.clone(),
            over: self.over,
            wire,
            limit: self.timeout.0,
            result: self.result.clone(),
        })
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let is_framed = self.framing == Some(Framing::Header) && self.over != Over::TcpHeader;
        let over = format!("{}{}", self.over.name(), if is_framed { "+header" } else { "" });
        vec![("client", shell_words::join(&self.command)), ("over", over)]
    }
}
