//! Checks a client: serves scenarios to it, and looks at what it sends and how it exits.
//!
//! The server here is written by hand, byte by byte, because most of its responses are wrong on
//! purpose.

mod client_process;
mod codec;
mod connection;
mod evaluate;
mod listener;
mod message_checks;
mod received;
mod record;
mod runner;
mod scenario;
mod scenario_runner;
mod scenario_state;
mod scenarios;

use std::time::Duration;

use tokio::time::Instant;

use self::listener::ListenAddress;
use self::runner::ClientRunner;
use self::scenario_runner::ScenarioRunner;
use self::scenarios::SuiteEntry;
use crate::RunEvent;
use crate::error::CheckError;
use crate::result::CaseResult;
use crate::selection::{CaseSummary, Selection};

pub use self::listener::{ClientFraming, ClientTransport};

/// The options of a client check.
#[derive(Clone, Debug)]
pub struct ClientCheck {
    /// The client's program and arguments. `{endpoint}`, `{address}` and `{port}` stand for the
    /// server's.
    pub command: Vec<String>,
    /// The wire that the scenarios are served on.
    pub transport: ClientTransport,
    /// The framing of a raw stream; `None` for the default.
    pub framing: Option<ClientFraming>,
    /// The result of ordinary calls, as JSON. Without one, a call gets its own params.
    pub result: Option<String>,
    /// Clients at once.
    pub jobs: usize,
    /// The time limit of one scenario.
    pub timeout: Duration,
    /// The time limit of the whole run; `None` for no limit.
    pub budget: Option<Duration>,
}

/// The cases of a client check.
#[derive(Clone, Debug)]
pub struct ClientSuite {
    entries: Vec<SuiteEntry>,
}

/// The outcome of a client check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientRun {
    /// One result per case, in the order of the suite.
    pub results: Vec<CaseResult>,
    /// The time was up before all scenarios were run.
    pub is_late: bool,
}

impl ClientSuite {
    /// Returns every case.
    pub fn shipped() -> Self {
        Self { entries: scenarios::entries() }
    }

    /// Keeps the chosen cases.
    ///
    /// # Errors
    ///
    /// A pattern matches no case, or no case is left.
    pub fn select(&mut self, selection: &Selection) -> Result<(), CheckError> {
        selection.apply(&mut self.entries, SuiteEntry::summary)
    }

    /// Returns the cases, in the order of the run.
    pub fn summaries(&self) -> impl ExactSizeIterator<Item = CaseSummary<'_>> {
        self.entries.iter().map(SuiteEntry::summary)
    }
}

impl ClientCheck {
    /// The default time limit of one scenario.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// The default time limit of a run.
    pub const BUDGET: Duration = Duration::from_secs(300);

    /// Checks the client that this command starts, over this transport, with default options.
    pub fn new(command: Vec<String>, transport: ClientTransport) -> Self {
        Self {
            command,
            transport,
            framing: None,
            result: None,
            jobs: 1,
            timeout: Self::TIMEOUT,
            budget: Some(Self::BUDGET),
        }
    }

    /// Returns the name of the wire, such as `http` or `tcp+header`.
    pub fn wire_name(&self) -> String {
        let is_framed = self.framing == Some(ClientFraming::Header)
            && self.transport != ClientTransport::TcpHeader;
        format!("{}{}", self.transport.name(), if is_framed { "+header" } else { "" })
    }

    fn runner(&self) -> Result<ScenarioRunner, CheckError> {
        if self.transport != ClientTransport::Stdio && !ListenAddress::is_wanted(&self.command) {
            return Err(CheckError::usage(
                "the command has no placeholder for the server's address",
            )
            .hint("put {endpoint}, {address} or {port} into it, as in: -- ./client {endpoint}"));
        }
        let wire = self.transport.wire(self.framing).ok_or_else(|| {
            let name = self.transport.name();
            CheckError::usage(format!("--framing has no effect with --over {name}"))
                .hint("--framing is for --over tcp, unix and stdio")
        })?;
        Ok(ScenarioRunner {
            argv: self.command.clone(),
            transport: self.transport,
            wire,
            limit: self.timeout,
            result: self.result.clone(),
        })
    }
}

/// Runs the suite against a client.
///
/// Dropping the future ends the run, and kills every process that it started.
///
/// # Errors
///
/// The options are invalid, or the client does not start, or makes no ordinary call.
pub async fn run(
    check: &ClientCheck,
    suite: &ClientSuite,
    on_event: impl Fn(RunEvent<'_>),
) -> Result<ClientRun, CheckError> {
    let deadline = check.budget.and_then(|budget| Instant::now().checked_add(budget));
    let run = ClientRunner { runner: check.runner()?, deadline, jobs: check.jobs };
    let on_case = |done, group: &str| on_event(RunEvent::Case { done, group });
    let (results, is_late) = run.evaluate(&suite.entries, on_case).await?;
    Ok(ClientRun { results, is_late })
}
