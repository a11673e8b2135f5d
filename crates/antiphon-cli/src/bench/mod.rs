//! `antiphon bench`: how many calls a server answers in a second, and how long each takes.
//!
//! It is a client of no library: what it sends is written once, and what comes back is compared
//! byte by byte, so that the server is measured and not the loader. A reply counts when it is
//! right.

mod check;
mod input;
mod ledger;
mod live;
mod named_endpoint;
mod outgoing;
mod pace;
mod plan;
mod report;
mod request;
mod round;
mod table;
mod talk;
mod tally;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use antiphon::RawJson;
use antiphon_check::raw::{RemoteHosts, Target};
use clap::{Args, ValueEnum};
use http::{HeaderName, HeaderValue};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::check::Expected;
use self::live::Live;
use self::named_endpoint::{NamedEndpoint, named_endpoint};
use self::plan::Plan;
use self::report::{Figures, Report};
use self::request::Request;
use self::round::Measured;
use self::tally::Window;
use crate::exit::{Exit, Failure};
use crate::params::{ParamArgs, read_data};
use crate::quantity::{Count, MaybeSpan, Span};
use crate::tls::ClientTls;
use crate::{endpoint, output, remote};

const WARM_UP: Duration = Duration::from_millis(500);
/// Rounds of each, where several endpoints are compared.
const ROUNDS: usize = 5;

/// Measure how many calls a server answers, and how fast
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct BenchArgs {
    /// Where the server is, such as http://127.0.0.1:8650, unix:/run/app.sock, exec:my-server
    #[arg(value_parser = endpoint::callable)]
    endpoint: antiphon::Endpoint,
    /// The method to call
    method: String,
    #[command(flatten)]
    params: ParamArgs,
    /// How many connections, or child processes of exec:
    #[arg(short, long, value_name = "N", default_value_t = Count(16))]
    connections: Count,
    /// Calls in flight on each connection; over HTTP they are pipelined [default: 1, or what --rate
    /// needs]
    #[arg(short = 'f', long, value_name = "N")]
    in_flight: Option<Count>,
    /// Send each message as an Array of so many calls
    #[arg(short, long, value_name = "N")]
    batch: Option<Count>,
    /// How long to measure, in each round
    #[arg(short = 't', long, value_name = "TIME", default_value_t = Span(Duration::from_secs(5)))]
    duration: Span,
    /// Measure so many calls in each round, however long they take
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration")]
    count: Option<Count>,
    /// What is not counted before [default: 500ms, or none with --count]
    #[arg(long, value_name = "TIME")]
    warm_up: Option<MaybeSpan>,
    /// Send so many calls a second in all, answered or not; latency counts from when each was due
    #[arg(long, value_name = "N")]
    rate: Option<Count>,
    /// How often to measure [default: 1, or 5 with --vs]
    #[arg(long, value_name = "N")]
    rounds: Option<Count>,
    /// Another endpoint to compare with, in turns; may be repeated
    #[arg(long, value_name = "[NAME=]ENDPOINT", value_parser = named_endpoint)]
    vs: Vec<NamedEndpoint>,
    /// What to call the first endpoint in the results
    #[arg(long)]
    name: Option<String>,
    /// What each result must be: JSON, @file, or - for stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    expect: Option<String>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// How long to wait for a connection, and for an answer; 0 or none for ever
    #[arg(long, value_name = "TIME", default_value_t = remote::TIMEOUT.into())]
    timeout: MaybeSpan,
    /// A header to send, as in 'Authorization: Bearer ...'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = remote::header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    #[command(flatten)]
    tls: ClientTls,
    /// Threads that send; each has its part of the connections
    #[arg(long, value_name = "N", default_value_t = Count(1))]
    threads: Count,
    /// Send the load to another machine, too
    #[arg(long)]
    allow_remote: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A table
    Text,
    /// One JSON document
    Json,
}

const HELP: &str = "\
Examples:
  antiphon bench http://127.0.0.1:8650 subtract 42 23 --expect 19
  antiphon bench ws://127.0.0.1:8650 subtract 42 23 -c 64 -f 16    16 calls at a time on each of 64
  antiphon bench tcp://127.0.0.1:4000 sum -d '[1,2,4]' -b 100      100 calls in a message
  antiphon bench http://127.0.0.1:8650 echo hi -n 100000           so many calls, and no more
  antiphon bench http://127.0.0.1:8650 echo hi --rate 20000        is it fast enough for that?
  antiphon bench --name old http://127.0.0.1:1 ping --vs new=http://127.0.0.1:2 --format json
  antiphon bench exec+header:my-server ping -c 4                   4 child processes
  antiphon bench https://127.0.0.1:8650 ping --cacert cert.pem     by TLS, and HTTP/1.1

Each call waits for the answer to another, with as many of them in flight as you say: that finds
the most a server can do. With --rate, calls are sent when they are due, answered or not, and
latency counts from then: that finds how long people wait. At most 1024 messages (over HTTP: 1)
are then in flight on a connection, unless -f says otherwise; what is due meanwhile goes as soon as
there is room, and what has not gone at the end is an error, `late`. To be on time, the loader keeps
its core busy.

Several endpoints take turns, and each round is begun by another one. Calls a second are the median
of the rounds; the ratio is to the first endpoint. A batch counts as all of its calls, and has one
latency.

A reply counts if it is a valid Response to a call that waits for one, and has a result, which is
that of --expect. Anything else is an error of one of these kinds:
  error CODE              an error Response                                         exit code 1
  http STATUS             an HTTP answer without success                            exit code 3
  lost, connect           connections that ended, or could not be made              exit code 3
  unsent                  calls of --count that were left when the server was gone  exit code 3
  timeout, late           no answer at all for --timeout; not sent in time          exit code 4
  wrong id, wrong result  a reply to no call, or to one twice; another result       exit code 5
  protocol                no valid Response, or no valid framing                    exit code 5
The highest of these codes is the exit code, and 0 where there are none. A connection that ends is
made again; a server that cannot be reached at first ends the run. Ctrl-C ends it too, and prints
what was measured until then.";

pub(crate) async fn run(args: BenchArgs) -> Result<Exit, Failure> {
    let plan = Arc::new(args.plan()?);
    let targets = args.targets().await?;
    let rounds = args.rounds.map_or(if targets.len() > 1 { ROUNDS } else { 1 }, |count| count.0);
    let mut interrupt = signal(SignalKind::interrupt())
        .map_err(|error| Failure::new(Exit::Transport, format!("no signals: {error}")))?;
    let measured = measure(&plan, &targets, rounds, &mut interrupt).await;
    let measured = measured.map_err(|failure| args.tls.advise(failure))?;
    let report = args.report(&plan, &targets, rounds, &measured);
    output::line(&match args.format {
        Format::Text => table::text(&report, &args.load(&plan, &report)),
        Format::Json => serde_json::to_string(&report)
            .map_err(|error| Failure::new(Exit::Protocol, error.to_string()))?,
    })?;
    Ok(report.exit())
}

/// Round by round, each endpoint in its turn; gives the rounds of each.
async fn measure(
    plan: &Arc<Plan>,
    targets: &[Arc<Target>],
    rounds: usize,
    interrupt: &mut Signal,
) -> Result<Vec<Vec<Measured>>, Failure> {
    let mut measured: Vec<Vec<Measured>> = targets.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..targets.len() {
            let at = (round + turn) % targets.len();
            let what = match rounds {
                1 => targets[at].name.clone(),
                _ => format!("{}, round {} of {rounds}", targets[at].name, round + 1),
            };
            let done =
                round::run(plan, &targets[at], round == 0, &Live::new(what), interrupt).await?;
            let is_cut = done.is_cut;
            measured[at].push(done);
            if is_cut {
                return Ok(measured);
            }
        }
    }
    Ok(measured)
}

impl BenchArgs {
    fn plan(&self) -> Result<Plan, Failure> {
        let batch = self.batch.map(|batch| batch.0);
        let messages = self.count.map(|count| self.messages(count)).transpose()?;
        let warm_up = match self.warm_up {
            Some(MaybeSpan(span)) => span.unwrap_or_default(),
            None => self.count.map_or(WARM_UP, |_| Duration::ZERO),
        };
        let end = messages.is_none().then(|| nanos(warm_up.saturating_add(self.duration.0)));
        Ok(Plan {
            request: Request::new(&self.method, self.params.read()?, batch),
            expected: self.expected()?,
            connections: self.connections.0,
            threads: self.threads.0.min(self.connections.0),
            in_flight: self.in_flight.map(|count| count.0),
            window: Window { start: nanos(warm_up), end },
            messages,
            rate: self.rate.map(|rate| rate.0),
            patience: self.timeout.0,
            timeout: self.timeout.0.map_or(u64::MAX, nanos),
        })
    }

    fn messages(&self, count: Count) -> Result<u64, Failure> {
        let batch = self.batch.map_or(1, |batch| batch.0);
        if !count.0.is_multiple_of(batch) {
            return Err(Failure::usage(format!("{count} calls do not fill batches of {batch}"))
                .hint("choose a --count that is a multiple of --batch"));
        }
        Ok((count.0 / batch) as u64)
    }

    fn expected(&self) -> Result<Option<Arc<Expected>>, Failure> {
        let Some(typed) = &self.expect else { return Ok(None) };
        let text = RawJson::parse(read_data(typed)?)
            .map_err(|fault| Failure::usage(format!("--expect is not JSON: {fault}")))?;
        let expected = Expected::new(text)
            .map_err(|error| Failure::usage(format!("--expect cannot be read: {error}")))?;
        Ok(Some(Arc::new(expected)))
    }

    async fn targets(&self) -> Result<Vec<Arc<Target>>, Failure> {
        let all = std::iter::once(&self.endpoint).chain(self.vs.iter().map(|vs| &vs.endpoint));
        let tls = self.tls.raw(all)?;
        let first = NamedEndpoint { name: self.name.clone(), endpoint: self.endpoint.clone() };
        let remote = match self.allow_remote {
            true => RemoteHosts::Allowed,
            false => RemoteHosts::Refused(
                "load is for servers of your own: --allow-remote sends it there all the same",
            ),
        };
        let mut targets = Vec::new();
        for named in std::iter::once(first).chain(self.vs.iter().cloned()) {
            let address = named.endpoint.to_string().parse()?;
            let mut target = Target::resolve(address, &self.headers, &tls, remote).await?;
            target.name = named.name.unwrap_or(target.name);
            targets.push(Arc::new(target));
        }
        Ok(targets)
    }

    fn report(
        &self,
        plan: &Plan,
        targets: &[Arc<Target>],
        rounds: usize,
        measured: &[Vec<Measured>],
    ) -> Report {
        let mut figures: Vec<Figures> = Vec::new();
        for (target, measured) in targets.iter().zip(measured) {
            let names = (target.name.clone(), target.address.to_string());
            figures.push(Figures::new(names, measured, figures.first()));
        }
        Report {
            method: self.method.clone(),
            connections: plan.connections,
            in_flight: targets.first().map_or(1, |target| plan.cap(target)),
            batch: self.batch.map(|batch| batch.0),
            rate: plan.rate,
            rounds,
            targets: figures,
        }
    }

    /// What was done, in a line.
    fn load(&self, plan: &Plan, report: &Report) -> String {
        let several = |count: usize, what| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let mut parts = vec![several(plan.connections, "connection")];
        if plan.rate.is_none() && report.in_flight > 1 {
            parts.push(format!("{} in flight on each", report.in_flight));
        }
        parts.extend(self.batch.map(|batch| format!("batches of {batch}")));
        parts.extend(self.rate.map(|rate| format!("{rate} calls/s are due")));
        let amount = match self.count {
            Some(count) => several(count.0, "call"),
            None => self.duration.to_string(),
        };
        parts.push(match report.rounds {
            1 => amount,
            rounds => format!("{rounds} rounds of {amount}"),
        });
        let place = match &*report.targets {
            [only] => format!(" at {}", only.name),
            _ => String::new(),
        };
        format!("{}{place}: {}", self.method, parts.join(", "))
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
