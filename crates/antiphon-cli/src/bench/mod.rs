//! `antiphon bench`: a load generator that measures calls per second and latency.
//!
//! It does not use the library's client. A request is encoded once, and a reply is compared with a
//! template, so the cost of the load generator stays small. Only a valid reply counts.

mod config;
mod connection;
mod named_endpoint;
mod pacer;
mod pending;
mod progress_line;
mod receive_buffer;
mod reply_checker;
mod report;
mod request;
mod round;
mod send_buffer;
mod stats;
mod table;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use antiphon::RawJson;
use antiphon_check::raw::{RemoteHosts, ResolvedTarget};
use clap::{Args, ValueEnum};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::config::BenchConfig;
use self::named_endpoint::{NamedEndpoint, named_endpoint};
use self::progress_line::ProgressLine;
use self::reply_checker::ExpectedResult;
use self::report::{BenchReport, Figures};
use self::request::RequestTemplate;
use self::round::RoundResult;
use self::stats::Window;
use crate::exit::{CommandError, Exit};
use crate::params::{ParamArgs, read_data};
use crate::quantity::{Count, MaybeSpan, Span};
use crate::request_headers::RequestHeaders;
use crate::tls::ClientTls;
use crate::{connect, endpoint, output};

const WARM_UP: Duration = Duration::from_millis(500);
/// The default number of rounds with `--vs`.
const ROUNDS: usize = 5;

/// Measure the throughput and latency of a server
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct BenchArgs {
    /// Endpoint of the server, such as http://127.0.0.1:8650, unix:/run/app.sock or exec:my-server
    #[arg(value_parser = endpoint::callable)]
    endpoint: antiphon::Endpoint,
    /// Method to call
    method: String,
    #[command(flatten)]
    params: ParamArgs,
    /// Open this many connections; with exec:, start this many child processes
    #[arg(short, long, value_name = "N", default_value_t = Count(16))]
    connections: Count,
    /// Keep this many messages in flight on each connection; HTTP requests are pipelined [default: 1,
    /// or 1024 with --rate on a transport other than HTTP]
    #[arg(short = 'f', long, value_name = "N")]
    in_flight: Option<Count>,
    /// Send batches of this many calls
    #[arg(short, long, value_name = "N")]
    batch: Option<Count>,
    /// Measure for this long in each round
    #[arg(short = 't', long, value_name = "TIME", default_value_t = Span(Duration::from_secs(5)))]
    duration: Span,
    /// Measure this many calls in each round, without a time limit
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration")]
    count: Option<Count>,
    /// Send load for this long before the measurement [default: 500ms, or none with --count]
    #[arg(long, value_name = "TIME")]
    warm_up: Option<MaybeSpan>,
    /// Send this many calls per second in total, on a fixed schedule
    #[arg(long, value_name = "N")]
    rate: Option<Count>,
    /// Run this many rounds [default: 1, or 5 with --vs]
    #[arg(long, value_name = "N")]
    rounds: Option<Count>,
    /// Compare with this endpoint [repeatable]
    #[arg(long, value_name = "[NAME=]ENDPOINT", value_parser = named_endpoint)]
    vs: Vec<NamedEndpoint>,
    /// Name of the first endpoint in the results [default: its address]
    #[arg(long)]
    name: Option<String>,
    /// Count a call only if its result equals this: JSON, @FILE, or - for stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    expect: Option<String>,
    /// Print the results in this format
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    format: BenchFormat,
    /// Fail a connection attempt or a call after this long; 0 or none waits forever
    #[arg(long, value_name = "TIME", default_value_t = connect::DEFAULT_TIMEOUT.into())]
    timeout: MaybeSpan,
    #[command(flatten)]
    headers: RequestHeaders,
    #[command(flatten)]
    tls: ClientTls,
    /// Spread the connections over this many threads
    #[arg(long, value_name = "N", default_value_t = Count(1))]
    threads: Count,
    /// Allow endpoints on other machines; send load only to servers that you may test
    #[arg(long)]
    allow_remote: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BenchFormat {
    /// Table
    Text,
    /// One JSON document
    Json,
}

const HELP: &str = "\
Examples:
  antiphon bench http://127.0.0.1:8650 subtract 42 23 --expect 19
  antiphon bench ws://127.0.0.1:8650 subtract 42 23 -c 64 -f 16
  antiphon bench http://127.0.0.1:8650 sum -d '[1,2,4]' -b 100   # batches
  antiphon bench http://127.0.0.1:8650 echo hi -n 100000         # 100,000 calls
  antiphon bench http://127.0.0.1:8650 echo hi --rate 20000      # fixed rate
  antiphon bench 'exec:antiphon serve stdio:' echo hi -c 4       # 4 processes
  antiphon bench https://127.0.0.1:8650 echo hi --cacert cert.pem
  antiphon bench --name http http://127.0.0.1:8650 echo hi \\
      --vs ws=ws://127.0.0.1:8650 --format json                  # compare

Load:
  Without --rate, each connection keeps --in-flight messages in flight and sends
  the next one after a reply. This measures the maximum throughput.

  With --rate, calls have a fixed schedule, and latency is measured from the
  scheduled time. This measures how long clients wait. A connection has at most
  1024 messages in flight (HTTP: 1) unless -f sets another limit. A scheduled
  call that is not sent before the end is an error of kind `late`. The load
  generator polls, so it keeps its core busy.

  https:// endpoints use HTTP/1.1.

Results:
  With --vs, endpoints take turns, and each round starts with another one.
  calls/s is the median of the rounds. The ratio compares with the first
  endpoint. A batch counts as all of its calls and has one latency.

Errors:
  A call succeeds if its reply is a valid response with a result, equal to
  --expect if that is given. Other outcomes are errors of these kinds:
    error CODE              an error response                     exit code 1
    http STATUS             an HTTP status other than success     exit code 3
    lost, connect           a connection ended or failed to open  exit code 3
    unsent                  server gone before --count calls      exit code 3
    timeout                 no reply within --timeout             exit code 4
    late                    not sent in time (--rate)             exit code 4
    wrong id                no call in flight has the reply's id  exit code 5
    wrong result            the result differs from --expect      exit code 5
    protocol                invalid response or framing           exit code 5
  The exit code is the highest of these, or 0 without errors. A connection that
  ends is opened again. If the first connections fail, the command stops. Ctrl-C
  stops the load and prints the results so far.";

pub(crate) async fn run(args: BenchArgs) -> Result<Exit, CommandError> {
    let config = Arc::new(args.config()?);
    let targets = args.targets().await?;
    let rounds = args.rounds.map_or(if targets.len() > 1 { ROUNDS } else { 1 }, |count| count.0);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| {
        CommandError::new(Exit::Transport, format!("cannot install signal handlers: {error}"))
    })?;
    let measured = measure(&config, &targets, rounds, &mut interrupt).await;
    let measured = measured.map_err(|failure| args.tls.advise(failure))?;
    let report = args.report(&config, &targets, rounds, &measured);
    output::line(&match args.format {
        BenchFormat::Text => table::text(&report, &args.load(&config, &report)),
        BenchFormat::Json => serde_json::to_string(&report)
            .map_err(|error| CommandError::new(Exit::Protocol, error.to_string()))?,
    })?;
    Ok(report.exit())
}

/// Runs the rounds, in which the endpoints take turns. Returns the rounds of each endpoint.
async fn measure(
    config: &Arc<BenchConfig>,
    targets: &[Arc<ResolvedTarget>],
    rounds: usize,
    interrupt: &mut Signal,
) -> Result<Vec<Vec<RoundResult>>, CommandError> {
    let mut measured: Vec<Vec<RoundResult>> = targets.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..targets.len() {
            let at = (round + turn) % targets.len();
            let what = match rounds {
                1 => targets[at].name.clone(),
                _ => format!("{}, round {} of {rounds}", targets[at].name, round + 1),
            };
            let done =
                round::run(config, &targets[at], round == 0, &ProgressLine::new(what), interrupt)
                    .await?;
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
    fn config(&self) -> Result<BenchConfig, CommandError> {
        let batch = self.batch.map(|batch| batch.0);
        let messages = self.count.map(|count| self.messages(count)).transpose()?;
        let warm_up = match self.warm_up {
            Some(MaybeSpan(span)) => span.unwrap_or_default(),
            None => self.count.map_or(WARM_UP, |_| Duration::ZERO),
        };
        let end = messages.is_none().then(|| nanos(warm_up.saturating_add(self.duration.0)));
        Ok(BenchConfig {
            request: RequestTemplate::new(&self.method, self.params.read()?, batch),
            expected: self.expected()?,
            connections: self.connections.0,
            threads: self.threads.0.min(self.connections.0),
            in_flight: self.in_flight.map(|count| count.0),
            window: Window { start: nanos(warm_up), end },
            messages,
            rate: self.rate.map(|rate| rate.0),
            connect_timeout: self.timeout.0,
            reply_timeout: self.timeout.0.map_or(u64::MAX, nanos),
        })
    }

    fn messages(&self, count: Count) -> Result<u64, CommandError> {
        let batch = self.batch.map_or(1, |batch| batch.0);
        if !count.0.is_multiple_of(batch) {
            return Err(CommandError::usage(format!(
                "--count {count} is not a multiple of --batch {batch}"
            ))
            .hint("choose a --count that is a multiple of --batch, since batches are sent whole"));
        }
        Ok((count.0 / batch) as u64)
    }

    fn expected(&self) -> Result<Option<Arc<ExpectedResult>>, CommandError> {
        let Some(typed) = &self.expect else { return Ok(None) };
        let text = RawJson::parse(read_data(typed)?)
            .map_err(|failed| CommandError::usage(format!("--expect is not JSON: {failed}")))?;
        let expected = ExpectedResult::new(text)
            .map_err(|error| CommandError::usage(format!("cannot parse --expect: {error}")))?;
        Ok(Some(Arc::new(expected)))
    }

    async fn targets(&self) -> Result<Vec<Arc<ResolvedTarget>>, CommandError> {
        let all = std::iter::once(&self.endpoint).chain(self.vs.iter().map(|vs| &vs.endpoint));
        let tls = self.tls.raw(all)?;
        let headers = self.headers.read()?;
        let first = NamedEndpoint { name: self.name.clone(), endpoint: self.endpoint.clone() };
        let remote = match self.allow_remote {
            true => RemoteHosts::Allowed,
            false => RemoteHosts::Refused(
                "send load only to servers that you may test; --allow-remote allows other machines",
            ),
        };
        let mut targets = Vec::new();
        for named in std::iter::once(first).chain(self.vs.iter().cloned()) {
            let address = named.endpoint.to_string().parse()?;
            let mut target = ResolvedTarget::resolve(address, &headers, &tls, remote).await?;
            target.name = named.name.unwrap_or(target.name);
            targets.push(Arc::new(target));
        }
        Ok(targets)
    }

    fn report(
        &self,
        config: &BenchConfig,
        targets: &[Arc<ResolvedTarget>],
        rounds: usize,
        measured: &[Vec<RoundResult>],
    ) -> BenchReport {
        let mut figures: Vec<Figures> = Vec::new();
        for (target, measured) in targets.iter().zip(measured) {
            let names = (target.name.clone(), target.address.to_string());
            figures.push(Figures::new(names, measured, figures.first()));
        }
        BenchReport {
            method: self.method.clone(),
            connections: config.connections,
            in_flight: targets.first().map_or(1, |target| config.cap(target)),
            batch: self.batch.map(|batch| batch.0),
            rate: config.rate,
            rounds,
            targets: figures,
        }
    }

    /// Describes the load in one line.
    fn load(&self, config: &BenchConfig, report: &BenchReport) -> String {
        let several = |count: usize, what| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let mut parts = vec![several(config.connections, "connection")];
        if config.rate.is_none() && report.in_flight > 1 {
            parts.push(format!("{} in flight on each", report.in_flight));
        }
        parts.extend(self.batch.map(|batch| format!("batches of {batch}")));
        parts.extend(self.rate.map(|rate| format!("{rate} calls/s scheduled")));
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
