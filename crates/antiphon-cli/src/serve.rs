//! `antiphon serve`: the demonstration service, on any number of endpoints.

use std::io;

use antiphon::transport::http::Guard;
use antiphon::{BindError, Endpoint, Server};
use clap::Args;
use clap::builder::ArgPredicate;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::{Exit, Failure};
use crate::limits::ServerLimits;
use crate::middleware::{self, Middleware};
use crate::tls::{ServerTls, Shown};
use crate::{demo, endpoint, output};

/// Serve the demonstration service on any number of endpoints
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct ServeArgs {
    /// Where to listen; a port of 0 picks a free one. With a certificate, https://127.0.0.1:8650 is
    /// the default
    #[arg(value_name = "ENDPOINT", value_parser = endpoint::servable)]
    #[arg(default_value = "http://127.0.0.1:8650", default_value_ifs = [
        ("tls_self_signed", ArgPredicate::IsPresent, "https://127.0.0.1:8650"),
        ("tls_cert", ArgPredicate::IsPresent, "https://127.0.0.1:8650"),
    ])]
    endpoints: Vec<Endpoint>,
    /// Read "params": null as absent, for clients that write it so
    #[arg(long)]
    null_params: bool,
    /// Serve pages of this origin too, such as https://app.example, or * for any; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Serve this Host too; on a loopback address others are refused; may be repeated
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Serve from this many threads; without it, from one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    middleware: Middleware,
    #[command(flatten)]
    tls: ServerTls,
    #[command(flatten)]
    limits: ServerLimits,
}

impl ServeArgs {
    /// Whether each call is logged.
    pub(crate) fn is_traced(&self) -> bool {
        self.middleware.trace
    }
}

fn help() -> String {
    format!("{EXAMPLES}\n\n{}\n\n{}", middleware::HELP, demo::HELP)
}

const EXAMPLES: &str = "\
Examples:
  antiphon serve                                       HTTP and WebSocket on 127.0.0.1:8650
  antiphon serve tcp://127.0.0.1:0 unix:/tmp/demo.sock several at once; 0 is any free port
  antiphon serve stdio:                                as a child process; ends with its stdin
  antiphon serve --allow-origin https://app.example    for a web page
  antiphon serve --tls-self-signed=cert.pem            HTTPS, to try it
  antiphon serve wss://0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem
  antiphon serve http://0.0.0.0:80/rpc --max-frame-bytes 1M --request-timeout 10s
  antiphon serve --auth-bearer @token --rate-limit 100/s --deny-method 'debug.*' --metrics
  ANTIPHON_MAX_CONNECTIONS=100 antiphon serve --log info";

pub(crate) async fn run(args: ServeArgs) -> Result<Exit, Failure> {
    let shown = args.tls.server(&args.endpoints, &args.allow_host)?;
    let mut server = bind(&args.endpoints).await?;
    if let Some(shown) = &shown {
        server = server.tls(shown.tls.clone());
        shown.write()?;
    }
    let guard = args.allow_origin.into_iter().fold(Guard::new(), Guard::allow_origin);
    let guard = args.allow_host.into_iter().fold(guard, Guard::allow_host);
    let server = server.limits(args.limits.limits()).null_params(args.null_params).guard(guard);
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let server = server.threads(args.threads.map_or_else(cores, usize::from));
    let (service, server) = args.middleware.wrap(demo::router(), server)?;
    // Before anybody is told that it listens: whoever waits for that may stop it at once.
    let signals = Signals::new().map_err(|error| failed("signals cannot be heard", &error))?;
    announce(&server.endpoints(), shown.as_ref());
    let (stop, stopped) = oneshot::channel();
    let serving = server.serve_until(service, async { drop(stopped.await) });
    tokio::select! {
        served = serving => match served {
            Ok(()) => Ok(Exit::Success),
            Err(error) => Err(failed("the server ended", &error)),
        },
        () = signals.twice(stop) => Ok(Exit::Interrupted),
    }
}

async fn bind(endpoints: &[Endpoint]) -> Result<Server, Failure> {
    let stdio = endpoints.iter().filter(|endpoint| matches!(endpoint, Endpoint::Stdio { .. }));
    if stdio.count() > 1 {
        return Err(Failure::usage("there is only one stdin; name stdio: once"));
    }
    let mut server = None;
    for endpoint in endpoints.iter().map(Endpoint::to_string) {
        let bound = match server {
            None => Server::bind(&endpoint).await,
            Some(server) => Server::and(server, &endpoint).await,
        };
        server = Some(bound.map_err(|error| not_bound(&error))?);
    }
    server.ok_or_else(|| Failure::usage("there is no endpoint to listen on"))
}

fn not_bound(error: &BindError) -> Failure {
    let BindError::Failed { endpoint, source } = error else {
        return Failure::usage(error.to_string());
    };
    let failure = Failure::new(Exit::Transport, format!("cannot listen on {endpoint}: {source}"));
    match source.kind() {
        io::ErrorKind::AddrInUse if endpoint.starts_with("unix") => {
            failure.hint("something is there already; choose another path, or stop who listens")
        }
        io::ErrorKind::AddrInUse => {
            failure.hint("choose another port, or :0 for a free one, or stop who listens there")
        }
        io::ErrorKind::AddrNotAvailable => {
            failure.hint("no interface of this machine has that address; 0.0.0.0 is all of them")
        }
        io::ErrorKind::PermissionDenied => failure.hint("choose a port over 1023, or another path"),
        _ => failure,
    }
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::new(Exit::Transport, format!("{what}: {error}"))
}

/// One line for each endpoint, for programs to read; then lines for people to try.
fn announce(endpoints: &[&Endpoint], shown: Option<&Shown>) {
    for endpoint in endpoints {
        output::note(&format!("listening on {endpoint}"));
    }
    let trust = shown.map(Shown::announce).unwrap_or_default();
    if let Some(http) = endpoints.iter().find(|endpoint| matches!(endpoint, Endpoint::Http { .. }))
    {
        let trust = if http.is_secure() { &*trust } else { "" };
        output::note(&format!(
            "try: curl{trust} {http} -H 'Content-Type: application/json' -d '{TRY}'"
        ));
        output::note(&format!("try: antiphon call{trust} {http} subtract 42 23"));
    }
}

const TRY: &str = r#"{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}"#;

/// Ctrl-C and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Asks for a stop at the first signal; done at the second.
    async fn twice(mut self, stop: oneshot::Sender<()>) {
        self.next().await;
        output::note("shutting down; once more stops at once");
        let _ = stop.send(());
        self.next().await;
    }
}
