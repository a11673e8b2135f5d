//! The start of a run: starts or reaches the server, and finds its methods. Errors name a remedy.

use std::time::Duration;

use tokio::time::Instant;

use super::ServerCheck;
use super::mcp::{self, FoundEra};
use super::methods::ServerMethods;
use super::server_access::ServerAccess;
use super::spawned_server::SpawnedServer;
use super::suite::Suite;
use super::suite_run::SuiteRun;
use super::timing::{PROBE_DELAY, Timing};
use crate::RunEvent;
use crate::error::{CheckError, CheckErrorKind};
use crate::raw::{AddressProtocol, RemoteHosts, ResolvedTarget, StreamFraming, TargetLocation};
use crate::transcript::{Profile, WireKind};

/// The longest run: still far from the limits of the clock.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

impl ServerCheck {
    /// Reaches the server and finds its methods.
    pub(super) async fn begin(
        &self,
        suite: &Suite,
        on_event: &impl Fn(RunEvent<'_>),
    ) -> Result<SuiteRun, CheckError> {
        let named = self.method.as_ref().map(|(method, _)| &**method);
        if self.profile == Profile::Mcp && named.is_some_and(|method| method != "tools/call") {
            let what = "--profile mcp takes no --method except tools/call";
            return Err(CheckError::usage(what)
                .hint("name a harmless tool: --params '{\"name\":\"...\",\"arguments\":{}}'"));
        }
        let server_access = self.server_access(suite).await?;
        let deadline = server_access.timing.deadline;
        self.start(server_access, on_event).await.map_err(|error| {
            if error.kind() == CheckErrorKind::Usage || Instant::now() < deadline {
                return error;
            }
            error
                .with_kind(CheckErrorKind::TimedOut)
                .about("the time limit was reached before the first case")
                .hint("--budget 2m allows more time")
        })
    }

    async fn server_access(&self, suite: &Suite) -> Result<ServerAccess, CheckError> {
        if self.spawn.is_some() && self.address.is_command() {
            return Err(CheckError::usage(
                "--spawn cannot be used with exec:, which starts a process per connection",
            )
            .hint("remove --spawn, or name the endpoint that the server listens on"));
        }
        let remote = if self.hostile && !self.allow_remote {
            RemoteHosts::Refused(
                "attack only your own servers; --allow-remote allows other machines",
            )
        } else {
            RemoteHosts::Allowed
        };
        let address = self.address.clone();
        let mut target = ResolvedTarget::resolve(address, &self.headers, &self.tls, remote).await?;
        target.is_quiet = !self.shows_stderr;
        let deadline = Instant::now() + self.budget.unwrap_or(FOREVER).min(FOREVER);
        let probe_delay = suite.is_shipped().then_some(PROBE_DELAY);
        let timing = Timing::new(self.timeout.min(FOREVER), deadline, probe_delay);
        Ok(ServerAccess::new(target, self.profile, timing))
    }

    /// Starts the server if there is a command, and finds its methods.
    async fn start(
        &self,
        mut server_access: ServerAccess,
        on_event: &impl Fn(RunEvent<'_>),
    ) -> Result<SuiteRun, CheckError> {
        let wire = wire(&server_access.target.address.protocol);
        let server = match &self.spawn {
            Some(command) => Some(SpawnedServer::start(command, &server_access).await?),
            None => None,
        };
        let is_child = matches!(server_access.target.location, TargetLocation::Child(_));
        if !is_child {
            self.reach(&server_access).await?;
        }
        let (methods, later_eras) = match self.methods(&mut server_access).await {
            Ok(methods) => methods,
            Err(fault) => {
                // An extra process only for the connection test is started only after a failure.
                if is_child {
                    self.reach(&server_access).await?;
                }
                return Err(no_reply(&fault, wire, self.profile));
            }
        };
        server_access.timing.adapt_to(methods.took);
        if !methods.has_method {
            on_event(RunEvent::Note(
                "no known method returns a result; name one with --method to run more cases",
            ));
        }
        let mut run = SuiteRun::new(server_access, methods, wire, server, self.hostile);
        run.later_eras = later_eras;
        Ok(run)
    }

    /// Finds the methods of the server; for an MCP server, those of each era.
    async fn methods(
        &self,
        server_access: &mut ServerAccess,
    ) -> Result<(ServerMethods, Vec<FoundEra>), String> {
        if self.profile != Profile::Mcp {
            let methods = ServerMethods::find(server_access, self.method.clone()).await?;
            return Ok((methods, Vec::new()));
        }
        let mut eras = mcp::find_eras(server_access, self.method.clone()).await?;
        let first = eras.remove(0);
        server_access.mcp = Some(first.client);
        Ok((first.methods, eras))
    }

    /// Checks that the server accepts connections, with TLS and WebSocket as the endpoint requires.
    async fn reach(&self, server_access: &ServerAccess) -> Result<(), CheckError> {
        let target = &server_access.target;
        if let Err(error) = server_access.reach().await {
            return Err(target.unreachable(&error).with_kind(CheckErrorKind::Unreachable));
        }
        if let AddressProtocol::Ws { .. } = target.address.protocol
            && let Err(fault) = server_access.connect(false).await
        {
            let what = format!("cannot connect to {}: {fault}", target.address);
            let other = "check the path; use http:// for a server that takes POST requests";
            return Err(CheckError::new(CheckErrorKind::Unreachable, what)
                .hint_where("returns status", other)
                .hint_where("returns status 401", CREDENTIALS)
                .hint_where("returns status 403", CREDENTIALS));
        }
        Ok(())
    }
}

const CREDENTIALS: &str =
    "-H 'Authorization: Bearer ...' adds credentials if the server requires them";

fn no_reply(fault: &str, wire: WireKind, profile: Profile) -> CheckError {
    let is_refused =
        ["HTTP status 401", "HTTP status 403"].iter().any(|sign| fault.starts_with(sign));
    let hint = match wire {
        _ if is_refused => CREDENTIALS,
        _ if profile == Profile::Mcp => {
            "an MCP server accepts `initialize` or `server/discover`; check the path of the endpoint"
        }
        WireKind::Line => {
            "the server may use another framing: try +header or +values, as in tcp+header://"
        }
        WireKind::Http | WireKind::Ws => {
            "name a method that returns a result: --method NAME --params JSON; -H adds a required header"
        }
        WireKind::Header | WireKind::Values => {
            "name a method that returns a result: --method NAME --params JSON"
        }
    };
    CheckError::new(CheckErrorKind::Protocol, format!("no ordinary call succeeds: {fault}"))
        .hint(hint)
}

fn wire(speech: &AddressProtocol) -> WireKind {
    match speech {
        AddressProtocol::Http { .. } => WireKind::Http,
        AddressProtocol::Ws { .. } => WireKind::Ws,
        AddressProtocol::Stream(StreamFraming::Line) => WireKind::Line,
        AddressProtocol::Stream(StreamFraming::Header) => WireKind::Header,
        AddressProtocol::Stream(StreamFraming::Values) => WireKind::Values,
    }
}
