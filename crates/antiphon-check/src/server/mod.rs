//! Checks a server: sends the transcripts of the suite and compares the replies.
//!
//! The transcripts in `testdata/wire` define the messages and the expected replies. Antiphon's own tests
//! run them too.

mod applicability;
mod case_outcome;
mod case_run;
mod connection;
mod liveness;
mod mcp;
mod methods;
mod normalize_bitcoin;
mod server_access;
mod setup;
mod spawned_server;
mod stray_message;
mod suite;
mod suite_run;
mod timing;

use std::time::Duration;

use http::{HeaderName, HeaderValue};

use crate::RunEvent;
use crate::error::CheckError;
use crate::raw::{Address, TlsOptions};
use crate::result::CaseResult;
use crate::transcript::{Profile, TranscriptCase};

pub use self::suite::Suite;
pub(crate) use self::suite::without_mark;

/// The options of a server check.
#[derive(Clone, Debug)]
pub struct ServerCheck {
    /// The address of the server.
    pub address: Address,
    /// A method of the server that returns a result, and its params as JSON. Without one, the run looks
    /// for a method.
    pub method: Option<(String, String)>,
    /// The dialect of the server.
    pub profile: Profile,
    /// The command that starts the server. The run starts it again after a crash and kills it at the
    /// end.
    pub spawn: Option<String>,
    /// Runs attacks too: deep nesting, endless and huge messages, slow clients, floods.
    pub hostile: bool,
    /// Runs attacks against other machines too.
    pub allow_remote: bool,
    /// Shows the stderr of a server that an `exec:` address starts.
    pub shows_stderr: bool,
    /// The time limit of one response. A process has at least 10 s for its response to `initialize`.
    pub timeout: Duration,
    /// The time limit of the whole run; `None` for no limit.
    pub budget: Option<Duration>,
    /// Headers of every HTTP request and WebSocket handshake.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The TLS options.
    pub tls: TlsOptions,
}

/// The outcome of a server check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerRun {
    /// One result per case, in the order of the run: the groups of the profile come first.
    pub results: Vec<CaseResult>,
    /// The method that ordinary cases called.
    pub method: String,
    /// The server went away before all cases were run.
    pub is_gone: bool,
    /// The time was up before all cases were run.
    pub is_late: bool,
}

impl ServerCheck {
    /// The default time limit of one response.
    pub const TIMEOUT: Duration = Duration::from_secs(2);
    /// The default time limit of a run.
    pub const BUDGET: Duration = Duration::from_secs(25);
    /// The default time limit of a run with the profile `mcp`, which starts many processes over stdio.
    pub const MCP_BUDGET: Duration = Duration::from_secs(60);
    /// The default time limit of a run with attacks.
    pub const HOSTILE_BUDGET: Duration = Duration::from_secs(300);

    /// Checks the server at this address, with default options.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            method: None,
            profile: Profile::Plain,
            spawn: None,
            hostile: false,
            allow_remote: false,
            shows_stderr: false,
            timeout: Self::TIMEOUT,
            budget: Some(Self::BUDGET),
            headers: Vec::new(),
            tls: TlsOptions::default(),
        }
    }
}

/// Runs the suite against a server.
///
/// Dropping the future ends the run, and kills every process that it started.
///
/// # Errors
///
/// The options are invalid, or the server replies to no ordinary call. A server that goes away later is
/// not an error: the remaining cases are not run.
pub async fn run(
    check: &ServerCheck,
    suite: &Suite,
    on_event: impl Fn(RunEvent<'_>),
) -> Result<ServerRun, CheckError> {
    let mut run = check.begin(suite, &on_event).await?;
    let cases = suite.in_order_for(check.profile);
    let on_case =
        |done, case: &TranscriptCase| on_event(RunEvent::Case { done, group: &case.group });
    let results = match check.profile {
        Profile::Mcp => mcp::run_cases(&mut run, &cases, suite.is_shipped(), on_case).await,
        _ => run.run_cases(&cases, on_case).await,
    };
    let (is_gone, is_late) = (run.is_gone, run.is_late);
    Ok(ServerRun { results, method: run.methods.method.clone(), is_gone, is_late })
}
