//! How a run begins: the server is started or reached, and asked what it can be asked. Where that fails,
//! what might help?

use std::time::Duration;

use antiphon::{Endpoint, Framing};
use tokio::time::Instant;

use super::CheckArgs;
use super::dial::{self, Dialer};
use super::run::Run;
use super::spawned::Spawned;
use super::subject::Subject;
use super::transcript::Wire;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::raw::target::{Named, Place, Remote, Speech, Target};

const BUDGET: Duration = Duration::from_secs(25);
const HOSTILE_BUDGET: Duration = Duration::from_secs(300);
/// Longer than any run, and still far from where clocks end.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

impl CheckArgs {
    /// Reaches the server and finds out what it can be asked.
    pub(super) async fn begin(&self, endpoint: &Endpoint) -> Result<Run, Failure> {
        if self.spawn.is_some() && matches!(endpoint, Endpoint::Exec { .. }) {
            return Err(Failure::usage("exec: starts a process for each connection by itself")
                .hint("leave --spawn out, or name the endpoint that it listens on"));
        }
        let dialer = self.dialer(endpoint).await?;
        let deadline = dialer.deadline;
        self.meet(dialer).await.map_err(|failure| {
            if failure.exit == Exit::Usage || Instant::now() < deadline {
                return failure;
            }
            failure
                .with_exit(Exit::Timeout)
                .about("the time was up before anything could be judged")
                .hint("--budget 2m gives more")
        })
    }

    async fn dialer(&self, endpoint: &Endpoint) -> Result<Dialer, Failure> {
        let tls = self.tls.client([endpoint])?;
        let named = Named { name: None, endpoint: endpoint.clone() };
        let remote = if self.hostile && !self.allow_remote {
            Remote::Refused(
                "attacks are for servers of your own: --allow-remote sends them there all the same",
            )
        } else {
            Remote::Allowed
        };
        let mut target = Target::find(named, &self.headers, &tls, remote).await?;
        target.is_quiet = !self.reporting.verbose;
        let usual = if self.hostile { HOSTILE_BUDGET } else { BUDGET };
        let budget = self.budget.map_or(Some(usual), |budget| budget.0);
        let deadline = Instant::now() + budget.unwrap_or(FOREVER).min(FOREVER);
        let pace = self.files.is_empty().then_some(dial::PACE);
        let patience = self.timeout.0.min(FOREVER);
        Ok(Dialer::new(target, self.profile, patience, deadline, pace))
    }

    /// Starts the server where it is ours to start, and gets to know it.
    async fn meet(&self, mut dialer: Dialer) -> Result<Run, Failure> {
        let wire = wire(&dialer.target.speech);
        let server = match &self.spawn {
            Some(command) => Some(Spawned::start(command, &dialer).await?),
            None => None,
        };
        let is_child = matches!(dialer.target.place, Place::Child(_));
        if !is_child {
            self.reach(&dialer).await?;
        }
        let named = self.method.clone().map(|method| (method, self.params.0.clone()));
        let subject = match Subject::find(&dialer, named).await {
            Ok(subject) => subject,
            Err(fault) => {
                // A process is started for nothing only where nothing could be judged.
                if is_child {
                    self.reach(&dialer).await?;
                }
                return Err(mute(&fault, wire));
            }
        };
        dialer.set_pace(subject.took);
        if !subject.has_method {
            output::note("no method is known that gives a result: --method NAME runs more cases");
        }
        Ok(Run::new(dialer, subject, wire, server, self.hostile))
    }

    /// Whether there is anybody, and speaks TLS and WebSocket where that is due.
    async fn reach(&self, dialer: &Dialer) -> Result<(), Failure> {
        let target = &dialer.target;
        if let Err(error) = dialer.reach().await {
            let failure = target.unreachable(&error).with_exit(Exit::Transport);
            return Err(self.tls.advise(failure));
        }
        if let Speech::Ws { .. } = target.speech
            && let Err(fault) = dialer.connect(false).await
        {
            let what = format!("cannot connect to {}: {fault}", target.endpoint);
            let other = "check the path; a server that is asked by POST is at http://";
            return Err(Failure::new(Exit::Transport, what)
                .hint_where("gives status", other)
                .hint_where("gives status 401", CREDENTIALS)
                .hint_where("gives status 403", CREDENTIALS));
        }
        Ok(())
    }
}

const CREDENTIALS: &str =
    "-H 'Authorization: Bearer ...' shows who you are, where the server asks for it";

fn mute(fault: &str, wire: Wire) -> Failure {
    let is_refused =
        ["HTTP status 401", "HTTP status 403"].iter().any(|sign| fault.starts_with(sign));
    let hint = match wire {
        _ if is_refused => CREDENTIALS,
        Wire::Line => {
            "a server may frame its messages otherwise: try +header or +values, as in tcp+header://"
        }
        Wire::Http | Wire::Ws => {
            "--method NAME --params JSON names a method that works; -H adds a header that it asks for"
        }
        Wire::Header | Wire::Values => "--method NAME --params JSON names a method that works",
    };
    Failure::new(Exit::Protocol, format!("the server answers no ordinary call: {fault}")).hint(hint)
}

fn wire(speech: &Speech) -> Wire {
    match speech {
        Speech::Http { .. } => Wire::Http,
        Speech::Ws { .. } => Wire::Ws,
        Speech::Stream(Framing::Line) => Wire::Line,
        Speech::Stream(Framing::Header) => Wire::Header,
        Speech::Stream(Framing::Values) => Wire::Values,
    }
}
