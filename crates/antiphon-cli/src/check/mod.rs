//! `antiphon check`: does a server keep to JSON-RPC 2.0, whoever wrote it?
//!
//! Transcripts say what is sent and what must come; they are the same that Antiphon itself is tested
//! with. Nothing here uses the library to talk: what judges must be able to say what is wrong.

mod bar;
pub(crate) mod baseline;
mod begin;
mod dial;
mod dialect;
pub(crate) mod report;
mod run;
mod spawned;
pub(crate) mod spec;
mod subject;
pub(crate) mod suite;
mod talk;
pub(crate) mod transcript;
mod trial;
pub(crate) mod verdict;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use antiphon::{Endpoint, RawJson};
use clap::Args;
use http::{HeaderName, HeaderValue};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

pub(crate) use self::bar::Bar;
use self::baseline::Baseline;
use self::report::{Format, Report};
use self::transcript::Profile;
use self::verdict::{Judged, Verdict};
use crate::exit::{Exit, Failure};
use crate::quantity::{MaybeSpan, Span};
use crate::tls::ClientTls;
use crate::{connect, endpoint, output};

const PATIENCE: Duration = Duration::from_secs(2);

/// Judge whether a server keeps to JSON-RPC 2.0, whatever it is written in
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CheckArgs {
    /// Where the server is, such as http://127.0.0.1:8650, unix:/run/app.sock, exec:my-server
    #[arg(value_name = "ENDPOINT", value_parser = first, required_unless_present = "list")]
    first: Option<First>,
    /// Transcripts to run instead of those that are built in
    files: Vec<PathBuf>,
    /// A harmless method of the server, to call in cases that need any; else one is looked for
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// Params that it takes, as JSON
    #[arg(long, value_name = "JSON", requires = "method", default_value = "[]")]
    params: RawParams,
    /// The dialect, for servers that deviate on purpose
    #[arg(long, value_enum, default_value_t = Profile::Plain)]
    profile: Profile,
    /// The command that starts the server; it is started again when it dies, and killed at the end
    #[arg(long, value_name = "COMMAND")]
    spawn: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// Attack it as well: bombs, endless and huge messages, slow clients, floods
    #[arg(long)]
    hostile: bool,
    /// Attack another machine, too: only with --hostile, and only if it is yours
    #[arg(long, requires = "hostile")]
    allow_remote: bool,
    #[command(flatten)]
    reporting: Reporting,
    /// How long one answer may take
    #[arg(long, value_name = "TIME", default_value_t = Span(PATIENCE))]
    timeout: Span,
    /// How long the whole run may take; 0 or none for ever [default: 25s, 5m with --hostile]
    #[arg(long, value_name = "TIME")]
    budget: Option<MaybeSpan>,
    /// A header to send, as in 'Authorization: Bearer ...'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = connect::header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    #[command(flatten)]
    tls: ClientTls,
}

/// What comes first on the command line: with `--list` it may be a transcript.
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

/// Which cases to run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Selection {
    /// Run these alone: a group, a case, the beginning of its name with *, or a level; may be repeated
    #[arg(long, value_name = "PATTERN", help_heading = "Cases")]
    only: Vec<String>,
    /// Leave these out; may be repeated
    #[arg(long, value_name = "PATTERN", help_heading = "Cases")]
    skip: Vec<String>,
    /// List the cases and run none
    #[arg(long, help_heading = "Cases")]
    pub(crate) list: bool,
}

/// How to tell what was found.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reporting {
    /// How to print the report
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Report")]
    format: Format,
    /// Known findings: fail only if something is worse, and tell what is better
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    baseline: Option<PathBuf>,
    /// Write what was found to --baseline
    #[arg(long, requires = "baseline", help_heading = "Report")]
    update_baseline: bool,
    /// Tell of every case, not only of findings
    #[arg(short, long, help_heading = "Report")]
    verbose: bool,
}

/// Params that were read, as they were written.
#[derive(Clone, Debug)]
struct RawParams(String);

impl std::str::FromStr for RawParams {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let json = RawJson::parse(text.as_bytes().to_vec()).map_err(|error| error.to_string())?;
        match json.as_str().trim_start().as_bytes().first() {
            Some(b'[' | b'{') => Ok(Self(json.as_str().to_owned())),
            _ => Err("params are an Array or an Object, as in '[1,2]' or '{\"a\":1}'".to_owned()),
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
  antiphon check http://127.0.0.1:3000 --spawn 'node server.js'    starts it, and again if it dies
  antiphon check http://127.0.0.1:3000 --only batch --only ids -v
  antiphon check http://127.0.0.1:3000 --baseline known.txt --update-baseline
  antiphon check http://127.0.0.1:3000 --format junit > report.xml
  antiphon check http://127.0.0.1:3000 my/*.wire                   your own transcripts
  antiphon check --list
  antiphon check --list my/*.wire

What a MUST of the specification asks for and a server does not do is a failure; a SHOULD is a
warning; where the specification leaves a choice, it is told what the server does, and not judged.
A server that crashes fails, whatever was sent.

Exit codes:
    0  no failure; with --baseline, nothing is worse
    1  a failure; with --baseline, something is worse; or the server was gone before all was run
    2  the command line or a transcript makes no sense, or --spawn finds its port taken
    3  the server cannot be reached, or the report cannot be written
    4  the time was up before all was run, and nothing failed
    5  the server answers no call, so that nothing can be judged
  130  Ctrl-C, SIGTERM or SIGHUP: the server that --spawn started has been ended, too";

pub(crate) async fn run(mut args: CheckArgs) -> Result<Exit, Failure> {
    if let Some(First::File(path)) = &args.first {
        if !args.selection.list {
            return Err(Failure::usage(format!("`{}` is no endpoint", path.display()))
                .hint("the endpoint comes first, and transcripts behind it"));
        }
        args.files.insert(0, path.clone());
    }
    let mut cases = suite::cases(&args.files)?;
    let known = args.known(&cases)?;
    args.selection.select(&mut cases, |case| (&case.group, &case.name, case.facts.level))?;
    if args.selection.list {
        return list(
            cases.iter().map(|case| (&*case.group, &*case.name, case.facts.level, &*case.title)),
        );
    }
    let Some(First::Endpoint(endpoint)) = &args.first else {
        return Err(Failure::usage("there is no endpoint"));
    };
    let bar = Bar::new(cases.len());
    // All that was started is dropped with the run, and so ended, whatever ends it.
    tokio::select! {
        biased;
        () = interrupted() => {
            bar.clear();
            Err(Failure::new(Exit::Interrupted, "interrupted before all cases were run"))
        }
        exit = args.judge(endpoint, &cases, known.as_ref(), &bar) => exit,
    }
}

/// Waits until somebody wants us to end.
pub(crate) async fn interrupted() {
    let heard = async |kind| match signal(kind) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = heard(SignalKind::interrupt()) => {}
        () = heard(SignalKind::terminate()) => {}
        () = heard(SignalKind::hangup()) => {}
    }
}

impl CheckArgs {
    /// What was known before. Names that no case has are told where all that is shipped is run.
    fn known(&self, cases: &[transcript::Case]) -> Result<Option<Baseline>, Failure> {
        let mut known = self.reporting.known()?;
        if let Some(known) = &mut known
            && self.files.is_empty()
            && self.selection.is_all()
        {
            let names: HashSet<&str> = cases.iter().map(|case| &*case.name).collect();
            for name in known.forget_strangers(|name| names.contains(name)) {
                let name = output::visible(&name);
                output::note(&format!("the baseline names {name}, and there is no such case"));
            }
        }
        Ok(known)
    }

    async fn judge(
        &self,
        endpoint: &Endpoint,
        cases: &[transcript::Case],
        known: Option<&Baseline>,
        bar: &Bar,
    ) -> Result<Exit, Failure> {
        let begun = Instant::now();
        let mut run = self.begin(endpoint).await?;
        let judged = run.judge(cases, |done, case| bar.draw(done, &case.group)).await;
        bar.clear();
        let facts = vec![
            ("endpoint", endpoint.to_string()),
            ("profile", self.profile.to_string()),
            ("method", run.subject.method.clone()),
        ];
        let exit = self.reporting.tell(known, facts, begun.elapsed(), judged)?;
        if run.is_gone {
            let what = "the server was gone before all cases were run";
            return Err(Failure::new(Exit::PeerError, what));
        }
        if run.is_late && exit == Exit::Success {
            return Err(Failure::new(Exit::Timeout, "the time was up before all cases were run")
                .hint("--budget 2m gives more"));
        }
        Ok(exit)
    }
}

impl Selection {
    fn is_all(&self) -> bool {
        self.only.is_empty() && self.skip.is_empty()
    }

    /// Keeps what is wanted. A pattern that means nothing is a mistake.
    pub(crate) fn select<T>(
        &self,
        cases: &mut Vec<T>,
        facts: impl Fn(&T) -> (&str, &str, transcript::Level),
    ) -> Result<(), Failure> {
        let is_meant = |pattern: &String, case: &T| {
            let (group, name, level) = facts(case);
            suite::is_meant(pattern, group, name, level)
        };
        for pattern in self.only.iter().chain(&self.skip) {
            if !cases.iter().any(|case| is_meant(pattern, case)) {
                return Err(Failure::usage(format!("no case is meant by `{pattern}`")).hint(
                    "--list shows them; name a group, a case, id-* or MUST, SHOULD, choice",
                ));
            }
        }
        cases.retain(|case| {
            (self.only.is_empty() || self.only.iter().any(|pattern| is_meant(pattern, case)))
                && !self.skip.iter().any(|pattern| is_meant(pattern, case))
        });
        if cases.is_empty() {
            return Err(Failure::usage("--only and --skip together leave no case"));
        }
        Ok(())
    }
}

/// Prints names, one a line.
pub(crate) fn list<'a>(
    cases: impl Iterator<Item = (&'a str, &'a str, transcript::Level, &'a str)>,
) -> Result<Exit, Failure> {
    for (group, name, level, title) in cases {
        output::line(&format!("{:<40} {level:<6} {title}", format!("{group}/{name}")))?;
    }
    Ok(Exit::Success)
}

impl Reporting {
    /// What was known before; nothing, where it is to be written for the first time.
    pub(crate) fn known(&self) -> Result<Option<Baseline>, Failure> {
        match &self.baseline {
            Some(path) if self.update_baseline && !path.exists() => Ok(Some(Baseline::default())),
            Some(path) => Baseline::read(path).map(Some),
            None => Ok(None),
        }
    }

    /// Prints the report, and says how to end.
    pub(crate) fn tell(
        &self,
        known: Option<&Baseline>,
        facts: Vec<(&'static str, String)>,
        took: Duration,
        judged: Vec<Judged>,
    ) -> Result<Exit, Failure> {
        let changes = known.map(|known| known.compare(&judged));
        let (seconds, is_verbose) = (took.as_secs_f64(), self.verbose);
        let report = Report { facts, seconds, judged, changes, is_verbose };
        report.print(self.format)?;
        if let (Some(path), Some(known), true) = (&self.baseline, known, self.update_baseline) {
            known.write(path, &report.judged)?;
            return Ok(Exit::Success);
        }
        let is_worse = match &report.changes {
            Some(changes) => changes.iter().any(baseline::Change::is_worse),
            None => report.count(Verdict::Failed) > 0,
        };
        Ok(if is_worse { Exit::PeerError } else { Exit::Success })
    }
}
