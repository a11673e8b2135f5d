//! `antiphon serve`: the demonstration service on one or more endpoints.

use std::io;

use antiphon::transport::http::Guard;
use antiphon::{BindError, Endpoint, ErrorChain, Server};
use clap::Args;
use clap::builder::ArgPredicate;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::dialect::DialectName;
use crate::exit::{CommandError, Exit};
use crate::limits::{ServerLimits, with_dialect_default};
use crate::middleware::{self, MiddlewareArgs};
use crate::tls::{ServerCertificate, ServerTls};
use crate::{demo, endpoint, output};

/// Serve the demonstration service on one or more endpoints
#[derive(Debug, Args)]
#[command(after_help = help(), mut_args(with_dialect_default))]
pub(crate) struct ServeArgs {
    /// Listen on these endpoints; port 0 picks a free port. With --tls-cert or --tls-self-signed the
    /// default is https://127.0.0.1:8650
    #[arg(value_name = "ENDPOINT", value_parser = endpoint::servable)]
    #[arg(default_value = "http://127.0.0.1:8650", default_value_ifs = [
        ("tls_self_signed", ArgPredicate::IsPresent, "https://127.0.0.1:8650"),
        ("tls_cert", ArgPredicate::IsPresent, "https://127.0.0.1:8650"),
    ])]
    endpoints: Vec<Endpoint>,
    /// Serve this dialect of JSON-RPC
    #[arg(long, value_enum, value_name = "NAME")]
    dialect: Option<DialectName>,
    /// Accept "params": null as if params were absent
    #[arg(long)]
    null_params: bool,
    /// Allow web pages of this origin, such as https://app.example, or * for any [repeatable]
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Accept this Host header too; by default, a loopback address accepts only loopback hosts
    /// [repeatable]
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Serve from this many threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    middleware: MiddlewareArgs,
    #[command(flatten)]
    tls: ServerTls,
    #[command(flatten)]
    limits: ServerLimits,
}

impl ServeArgs {
    /// Returns whether each call is logged.
    pub(crate) fn is_traced(&self) -> bool {
        self.middleware.trace
    }
}

fn help() -> String {
    format!("{EXAMPLES}\n\n{}\n\n{}\n\n{LIMITS}", middleware::HELP, demo::HELP)
}

const LIMITS: &str = "\
Limits:
  With --dialect ethereum or lsp, some limits have other defaults than those
  above; see docs/limits.md.";

const EXAMPLES: &str = "\
Examples:
  antiphon serve                          # HTTP and WebSocket, 127.0.0.1:8650
  antiphon serve tcp://127.0.0.1:0 unix:/tmp/demo.sock   # several endpoints
  antiphon serve stdio:                   # stdin and stdout; exits at EOF
  antiphon serve --tls-self-signed=cert.pem              # HTTPS for tests
  antiphon serve wss://0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem
  antiphon serve http://0.0.0.0:8080/rpc --max-frame-bytes 1M --log info
  antiphon serve --auth-bearer @tokens.txt --rate-limit 100/s --metrics
  antiphon serve --dialect bitcoin --auth-cookie .cookie   # as a Bitcoin node
  antiphon serve --dialect ethereum --jwt-secret jwt.hex   # as an Engine API
  antiphon serve --allow-origin https://app.example --deny-method 'debug.*'
  ANTIPHON_MAX_CONNECTIONS=100 antiphon serve --request-timeout 10s";

pub(crate) async fn run(args: ServeArgs) -> Result<Exit, CommandError> {
    args.middleware.check(&args.endpoints, args.dialect)?;
    let certificate = args.tls.server(&args.endpoints, &args.allow_host)?;
    let mut server = bind(&args.endpoints).await?;
    if let Some(certificate) = &certificate {
        server = server.tls(certificate.tls.clone());
        certificate.write()?;
    }
    let guard = args.allow_origin.into_iter().fold(Guard::new(), Guard::allow_origin);
    let guard = args.allow_host.into_iter().fold(guard, Guard::allow_host);
    let mut server = server.limits(args.limits.limits()).guard(guard);
    if let Some(dialect) = args.dialect {
        server = server.dialect(dialect.to_dialect());
    }
    if args.null_params {
        server = server.null_params(true);
    }
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let server = server.threads(args.threads.map_or_else(cores, usize::from));
    // Before the cookie file is written, so a signal always removes it, and before the server prints its endpoints: a
    // program that waits for that line may send a signal at once.
    let signals =
        Signals::new().map_err(|error| failed("cannot install signal handlers", &error))?;
    let cookie = args.middleware.write_cookie()?;
    let client_flags = args.middleware.client_flags();
    let (service, server) =
        args.middleware.wrap(demo::router(), server, args.dialect, cookie.as_ref())?;
    announce(&server.endpoints(), certificate.as_ref(), &client_flags);
    let (stop, stopped) = oneshot::channel();
    let serving = server.serve_until(service, async { drop(stopped.await) });
    tokio::select! {
        served = serving => match served {
            Ok(()) => Ok(Exit::Success),
            Err(error) => Err(failed("the server failed", &error)),
        },
        () = signals.twice(stop) => Ok(Exit::Interrupted),
    }
}

pub(crate) async fn bind(endpoints: &[Endpoint]) -> Result<Server, CommandError> {
    let stdio = endpoints.iter().filter(|endpoint| matches!(endpoint, Endpoint::Stdio { .. }));
    if stdio.count() > 1 {
        return Err(CommandError::usage(
            "stdio: is given more than once, but there is only one stdin",
        ));
    }
    let mut server = None;
    for endpoint in endpoints.iter().map(Endpoint::to_string) {
        let bound = match server {
            None => Server::bind(&endpoint).await,
            Some(server) => Server::and(server, &endpoint).await,
        };
        server = Some(bound.map_err(|error| not_bound(&error))?);
    }
    server.ok_or_else(|| CommandError::usage("no endpoint to listen on"))
}

fn not_bound(error: &BindError) -> CommandError {
    let exit = match error {
        BindError::Failed { .. } => Exit::Transport,
        _ => Exit::Usage,
    };
    CommandError::caused(exit, error)
}

pub(crate) fn failed(what: &str, error: &io::Error) -> CommandError {
    CommandError::new(Exit::Transport, format!("{what}: {}", ErrorChain(error)))
}

/// Prints a line per endpoint, which programs parse, and then commands to try.
fn announce(endpoints: &[&Endpoint], certificate: Option<&ServerCertificate>, credentials: &str) {
    for endpoint in endpoints {
        output::note(&format!("listening on {endpoint}"));
    }
    let trust = certificate.map(ServerCertificate::announce).unwrap_or_default();
    if let Some(http) = endpoints.iter().find(|endpoint| matches!(endpoint, Endpoint::Http { .. }))
    {
        let trust = if http.is_secure() { &*trust } else { "" };
        if credentials.is_empty() {
            output::note(&format!(
                "try: curl{trust} {http} -H 'Content-Type: application/json' -d '{TRY}'"
            ));
        }
        output::note(&format!("try: antiphon call{trust}{credentials} {http} subtract 42 23"));
    }
}

const TRY: &str = r#"{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}"#;

/// The signals that end a server: SIGINT (Ctrl-C), SIGTERM, and SIGHUP (its terminal is closed).
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if SIGHUP must keep its effect.
    hangup: Option<Signal>,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let hangup = handles_hangup().then(|| signal(SignalKind::hangup())).transpose()?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())?, hangup })
    }

    async fn next(&mut self) {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hung_up => {}
        }
    }

    /// Requests a graceful shutdown at the first signal and returns at the second.
    pub(crate) async fn twice(mut self, stop: oneshot::Sender<()>) {
        self.next().await;
        output::note("shutting down; press Ctrl-C again to stop at once");
        let _ = stop.send(());
        self.next().await;
    }
}

/// Returns whether to handle SIGHUP. Not if the parent process ignores it, as `nohup` does: a handler would replace
/// that. On a system without `/proc`, this is unknown, so there is no handler.
fn handles_hangup() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & HANGUP == 0)
}
