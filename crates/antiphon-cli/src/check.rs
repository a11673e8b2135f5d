//! `antiphon check`: the flags, the output and the exit code of a server check. The crate
//! `antiphon-check` performs the check.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use antiphon::{Endpoint, RawJson};
use antiphon_check::server::{self, ServerCheck, Suite};
use antiphon_check::{Baseline, Profile, RunEvent};
use clap::Args;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use tokio::time::Instant;

use crate::check_options::{ReportArgs, SelectionArgs, interrupted, list};
use crate::exit::{CommandError, Exit};
use crate::progress_bar::ProgressBar;
use crate::quantity::{MaybeSpan, Span};
use crate::request_headers::RequestHeaders;
use crate::tls::ClientTls;
use crate::{endpoint, output, secret};

/// The time for which a server accepts a token of the Engine API.
const TOKEN_LIFE: Duration = Duration::from_secs(60);

/// Check whether a server conforms to JSON-RPC 2.0
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CheckArgs {
    /// Endpoint of the server, such as http://127.0.0.1:8650, unix:/run/app.sock or exec:my-server
    #[arg(value_name = "ENDPOINT", value_parser = first, required_unless_present = "list")]
    first: Option<First>,
    /// Run these transcripts instead of the built-in suite
    files: Vec<PathBuf>,
    /// Call this harmless method in cases that need one; with --profile mcp, `tools/call`
    /// [default: found automatically]
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// Pass these params to --method: a JSON Array or Object
    #[arg(long, value_name = "JSON", requires = "method", default_value = "[]")]
    params: RawParams,
    /// Expect this dialect, if the server deviates from JSON-RPC 2.0 on purpose
    #[arg(long, value_enum, default_value_t = Profile::Plain)]
    profile: Profile,
    /// Start the server with this command, restart it after a crash, and kill it at the end
    #[arg(long, value_name = "COMMAND")]
    spawn: Option<String>,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Run attacks too: deep nesting, huge and endless messages, slow clients, floods
    #[arg(long)]
    hostile: bool,
    /// Allow attacks on another machine; attack only your own servers
    #[arg(long, requires = "hostile")]
    allow_remote: bool,
    #[command(flatten)]
    reporting: ReportArgs,
    /// Wait this long for each response; with --profile lsp, an exec: server has at least 10s for
    /// `initialize`
    #[arg(long, value_name = "TIME", default_value_t = Span(ServerCheck::TIMEOUT))]
    timeout: Span,
    /// Stop the run after this long; 0 or none disables it [default: 25s; 1m with
    /// --profile mcp, 5m with --hostile]
    #[arg(long, value_name = "TIME")]
    budget: Option<MaybeSpan>,
    #[command(flatten)]
    headers: RequestHeaders,
    /// Authenticate to the Engine API of an Ethereum node with a token, signed with the secret in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["hostile", "user"])]
    jwt_secret: Option<PathBuf>,
    #[command(flatten)]
    tls: ClientTls,
}

/// The first argument: an endpoint, or with `--list` a transcript.
#[derive(Clone, Debug)]
enum First {
    Endpoint(Endpoint),
    File(PathBuf),
}

fn first(text: &str) -> Result<First, String> {
    let path = PathBuf::from(text);
    match endpoint::callable(text) {
        Ok(endpoint) => Ok(First::Endpoint(endpoint)),
        Err(_) if text.ends_with(".wire") || path.is_file() => Ok(First::File(path)),
        Err(fault) => Err(fault),
    }
}

/// Params as JSON text, already validated.
#[derive(Clone, Debug)]
struct RawParams(String);

impl std::str::FromStr for RawParams {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let json = RawJson::parse(text.as_bytes().to_vec())
            .map_err(|error| format!("not JSON: {error}"))?;
        match json.as_str().trim_start().as_bytes().first() {
            Some(b'[' | b'{') => Ok(Self(json.as_str().to_owned())),
            _ => {
                Err("params must be an Array or an Object, as in '[1,2]' or '{\"a\":1}'".to_owned())
            }
        }
    }
}

const HELP: &str = "\
Examples:
  antiphon check http://127.0.0.1:8650
  antiphon check ws://127.0.0.1:8546 --profile ethereum
  antiphon check http://127.0.0.1:8545 --method eth_chainId
  antiphon check tcp://127.0.0.1:4000 --method get_user --params '{\"id\":1}'
  antiphon check exec+header:clangd --profile lsp
  antiphon check http://127.0.0.1:3000/mcp --profile mcp
  antiphon check http://127.0.0.1:3000 --spawn 'node server.js'    # starts and restarts it
  antiphon check http://127.0.0.1:3000 --only batch --only ids -v
  antiphon check http://127.0.0.1:3000 --baseline known.txt --update-baseline
  antiphon check http://127.0.0.1:3000 --format junit > report.xml
  antiphon check http://127.0.0.1:3000 my/*.wire                   # your own transcripts
  antiphon check --list
  antiphon check --list my/*.wire

A violated MUST is a failure, and a violated SHOULD is a warning. Where the specification leaves a
choice, the behavior is reported, not scored. A crash is always a failure.

Exit codes:
    0  no failure; with --baseline, no case is worse
    1  a failure; with --baseline, a case is worse; or the server became unreachable
    2  invalid command line or transcript, or another process listens on the port of --spawn
    3  the server is unreachable, or the report cannot be written
    4  --budget ended the run before all cases were run, and none failed
    5  no ordinary call succeeds, so no case can be run
  130  Ctrl-C, SIGTERM or SIGHUP; a server that --spawn started is killed too";

pub(crate) async fn run(mut args: CheckArgs) -> Result<Exit, CommandError> {
    if let Some(First::File(path)) = &args.first {
        if !args.selection.list {
            return Err(CommandError::usage(format!("`{}` is not an endpoint", path.display()))
                .hint("put the endpoint first, and transcripts after it"));
        }
        args.files.insert(0, path.clone());
    }
    let mut suite = match &args.files[..] {
        [] => Suite::shipped()?,
        files => Suite::from_files(files)?,
    };
    let baseline = args.baseline(&suite)?;
    suite.select(&args.selection.selection())?;
    if args.selection.list {
        return list(suite.summaries());
    }
    let Some(First::Endpoint(endpoint)) = &args.first else {
        return Err(CommandError::usage("the endpoint is missing"));
    };
    let bar = ProgressBar::new(suite.summaries().len());
    // The run drops, and so ends, every process that it started.
    tokio::select! {
        biased;
        () = interrupted() => {
            bar.clear();
            Err(CommandError::new(Exit::Interrupted, "interrupted before all cases were run"))
        }
        exit = args.check(endpoint, &suite, baseline.as_ref(), &bar) => exit,
    }
}

impl CheckArgs {
    /// Reads the baseline. Notes the names in it that no case has, if every shipped case is run.
    fn baseline(&self, suite: &Suite) -> Result<Option<Baseline>, CommandError> {
        let mut baseline = self.reporting.baseline()?;
        if let Some(baseline) = &mut baseline
            && suite.is_shipped()
            && self.selection.selection().is_everything()
        {
            let names: HashSet<&str> = suite.summaries().map(|case| case.name).collect();
            for name in baseline.remove_unknown(|name| names.contains(name)) {
                let name = output::visible(&name);
                output::note(&format!("the baseline contains {name}, but there is no such case"));
            }
        }
        Ok(baseline)
    }

    async fn check(
        &self,
        endpoint: &Endpoint,
        suite: &Suite,
        baseline: Option<&Baseline>,
        bar: &ProgressBar,
    ) -> Result<Exit, CommandError> {
        let start = Instant::now();
        let check = self.server_check(endpoint)?;
        let run = server::run(&check, suite, |event| match event {
            RunEvent::Note(text) => output::note(text),
            RunEvent::Case { done, group } => bar.draw(done, group),
            _ => {}
        });
        let run = run.await.map_err(|error| self.tls.advise(error.into()))?;
        bar.clear();
        let facts = vec![
            ("endpoint", endpoint.to_string()),
            ("profile", self.profile.to_string()),
            ("method", run.method),
        ];
        let exit = self.reporting.report(baseline, facts, start.elapsed(), run.results)?;
        if run.is_gone {
            let what = "the server became unreachable before all cases were run";
            return Err(CommandError::new(Exit::PeerError, what));
        }
        if run.is_late && exit == Exit::Success {
            return Err(CommandError::new(
                Exit::Timeout,
                "the time limit was reached before all cases were run",
            )
            .hint("--budget 2m allows more time"));
        }
        Ok(exit)
    }

    fn server_check(&self, endpoint: &Endpoint) -> Result<ServerCheck, CommandError> {
        let default = match (self.hostile, self.profile) {
            (true, _) => ServerCheck::HOSTILE_BUDGET,
            (false, Profile::Mcp) => ServerCheck::MCP_BUDGET,
            (false, _) => ServerCheck::BUDGET,
        };
        let budget = self.budget.map_or(Some(default), |budget| budget.0);
        Ok(ServerCheck {
            address: endpoint.to_string().parse()?,
            method: self.method.clone().map(|method| (method, self.params.0.clone())),
            profile: self.profile,
            spawn: self.spawn.clone(),
            hostile: self.hostile,
            allow_remote: self.allow_remote,
            shows_stderr: self.reporting.verbose,
            timeout: self.timeout.0,
            budget,
            headers: self.all_headers(budget)?,
            tls: self.tls.raw([endpoint])?,
        })
    }

    /// Returns the headers of each request. One token serves the whole run, so the run must not outlast it.
    fn all_headers(
        &self,
        budget: Option<Duration>,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, CommandError> {
        let mut headers = self.headers.read()?;
        if let Some(file) = &self.jwt_secret {
            self.headers.check_credentials("--jwt-secret")?;
            if budget.is_none_or(|budget| budget > TOKEN_LIFE) {
                let what = "the token of --jwt-secret is valid for 60 seconds, but the run may take longer";
                return Err(CommandError::usage(what).hint("use --budget 60s or less"));
            }
            headers.push((AUTHORIZATION, secret::jwt_header(file)?));
        }
        Ok(headers)
    }
}
