//! Measures MCP servers with raw messages: calls per second over HTTP and stdio in both eras of the protocol, and the
//! memory of an idle session.
//!
//! Every reply is checked. Servers take turns, and a figure is the median of its rounds.
//! Usage: mcp-load FOLDER-OF-BINARIES PYTHON SERVER.PY [--quick] [--only NAME]

mod contenders;
mod http;
mod http_load;
mod idle;
mod messages;
mod server;
mod spread;
mod stdio_load;
mod table;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use contenders::{Contender, Load, contenders};
use spread::Figure;
use table::Row;

/// The failure as text.
type Fault = Box<dyn Error>;

/// The workload and its duration.
struct Options {
    only: Option<String>,
    rounds: usize,
    warm_up: Duration,
    span: Duration,
    sessions: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let local = tokio::task::LocalSet::new();
    match local.run_until(run()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("mcp-load: {fault}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Fault> {
    let mut args = std::env::args().skip(1);
    let mut place =
        || args.next().ok_or("usage: mcp-load BINARIES PYTHON SERVER.PY [--quick] [--only NAME]");
    let known = contenders(&place()?, &place()?, &place()?);
    let options = Options::parse(args)?;
    for load in [
        Load::HttpLegacy,
        Load::HttpModern,
        Load::StdioLegacy,
        Load::StdioModern,
        Load::IdleSessions,
    ] {
        let name = load.name();
        if options.only.as_deref().is_some_and(|only| !name.starts_with(only)) {
            continue;
        }
        let able: Vec<&Contender> = known.iter().filter(|one| one.can(load)).collect();
        print!("{}", table::write(load, &measure(load, &able, &options).await?));
    }
    Ok(())
}

/// Interleaved rounds: each starts with another server, so that a slow minute of the machine hits all alike.
async fn measure(load: Load, able: &[&Contender], options: &Options) -> Result<Vec<Row>, Fault> {
    let mut figures = vec![Vec::new(); able.len()];
    let rounds =
        if load == Load::IdleSessions { 1.max(options.rounds / 2) } else { options.rounds };
    for round in 0..rounds {
        for turn in 0..able.len() {
            let index = (round + turn) % able.len();
            let figure = once(load, able[index], options).await;
            figures[index].push(
                figure.map_err(|fault| format!("{} {}: {fault}", able[index].name, load.name()))?,
            );
        }
    }
    Ok(able.iter().zip(figures).map(|(one, taken)| Row::new(one.name, &taken)).collect())
}

async fn once(load: Load, contender: &Contender, options: &Options) -> Result<Figure, Fault> {
    match load {
        Load::HttpLegacy | Load::HttpModern => {
            http_load::calls_per_second(contender, load, options).await
        }
        Load::StdioLegacy | Load::StdioModern => {
            stdio_load::calls_per_second(contender, load, options).await
        }
        Load::IdleSessions => idle::bytes_per_session(contender, options.sessions).await,
    }
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Fault> {
        let mut options = Self {
            only: None,
            rounds: 5,
            warm_up: Duration::from_millis(500),
            span: Duration::from_secs(2),
            sessions: 5_000,
        };
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => {
                    options.rounds = 1;
                    options.span = Duration::from_millis(500);
                    options.sessions = 500;
                }
                "--only" => options.only = Some(args.next().ok_or("--only needs a name")?),
                _ => return Err(format!("unknown argument {arg}").into()),
            }
        }
        Ok(options)
    }
}
