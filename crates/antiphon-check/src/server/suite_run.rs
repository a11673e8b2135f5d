//! The run of the suite: one case after the other, even if the server crashes.
//!
//! Cases share a connection while it is usable. After a finding, the next case gets a new connection.
//! The run restarts a crashed server that `--spawn` started, and waits a while for any other. A server
//! that stays away ends the run; the remaining cases are not run.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::case_run::{CaseRun, ConnectionAfter};
use super::connection::ServerConnection;
use super::methods::ServerMethods;
use super::server_access::ServerAccess;
use super::spawned_server::SpawnedServer;
use crate::raw::TargetLocation;
use crate::result::{CaseResult, CaseStatus, DialogueLine, FailureKind, Finding};
use crate::transcript::json::Json;
use crate::transcript::{CaseStep, TranscriptCase, WireKind};

/// The time for a server to come back.
const COMEBACK: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(50);
/// The time for a server to crash after a wrong reply.
const CRASH_DELAY: Duration = Duration::from_millis(25);
const TIME_UP: &str = "the time limit was reached; --budget sets a longer one";

/// A running suite.
pub(super) struct SuiteRun {
    pub(super) server_access: ServerAccess,
    pub(super) methods: ServerMethods,
    pub(super) wire: WireKind,
    pub(super) is_hostile: bool,
    pub(super) server: Option<SpawnedServer>,
    /// A usable connection of an earlier case, and the index of that case.
    spare: Option<(ServerConnection, usize)>,
    /// The reason why no more cases can be run.
    stop_reason: Option<String>,
    /// The server went away for good.
    pub(super) is_gone: bool,
    /// The time was up before all cases were run.
    pub(super) is_late: bool,
    /// The time was up at the last finding. Such a finding says nothing about the server. The search for
    /// a crash after a finding does not count.
    was_time_up: bool,
}

impl SuiteRun {
    pub(super) fn new(
        server_access: ServerAccess,
        methods: ServerMethods,
        wire: WireKind,
        server: Option<SpawnedServer>,
        is_hostile: bool,
    ) -> Self {
        let (spare, stop_reason) = (None, None);
        let (is_gone, is_late, was_time_up) = (false, false, false);
        Self {
            server_access,
            methods,
            wire,
            is_hostile,
            server,
            spare,
            stop_reason,
            is_gone,
            is_late,
            was_time_up,
        }
    }

    /// Runs the cases in turn. Calls `on_case` before each.
    pub(super) async fn run_cases(
        &mut self,
        cases: &[TranscriptCase],
        on_case: impl Fn(usize, &TranscriptCase),
    ) -> Vec<CaseResult> {
        let mut all = Vec::with_capacity(cases.len());
        for (index, case) in cases.iter().enumerate() {
            on_case(index, case);
            let obstacle = self.obstacle(case);
            let mut found = match obstacle {
                Some(reason) => result_of(case, CaseStatus::NotRun, Some(reason)),
                None => {
                    self.server_access.attacks(case.facts.is_hostile);
                    self.case(cases, index, &mut all).await
                }
            };
            if matches!(found.status, CaseStatus::Failed | CaseStatus::Warned | CaseStatus::Differs)
                && self.was_time_up
            {
                self.is_late = true;
                found = result_of(case, CaseStatus::NotRun, Some(TIME_UP.to_owned()));
            }
            all.push(found);
        }
        if let Some((connection, _)) = self.spare.take() {
            connection.close().await;
        }
        all
    }

    /// Returns the reason why this case cannot be run.
    fn obstacle(&mut self, case: &TranscriptCase) -> Option<String> {
        let (facts, profile) = (&case.facts, self.server_access.profile);
        if !facts.fits(self.wire) {
            return Some(match &facts.only[..] {
                [] => "cannot be expressed over this transport".to_owned(),
                only => {
                    let names: Vec<String> = only.iter().map(ToString::to_string).collect();
                    format!("applies only to {}", names.join(", "))
                }
            });
        }
        if !facts.profiles.is_empty() && !facts.profiles.contains(&profile) {
            let names: Vec<String> = facts.profiles.iter().map(ToString::to_string).collect();
            return Some(format!("applies only to --profile {}", names.join(" and ")));
        }
        if facts.unless.contains(&profile) {
            return Some(format!("the profile {profile} deviates here on purpose"));
        }
        if facts.is_hostile && !self.is_hostile {
            return Some("is an attack; --hostile runs it".to_owned());
        }
        if self.wire == WireKind::Values && !case.steps.iter().all(is_value) {
            return Some("the framing `values` cannot carry invalid JSON".to_owned());
        }
        let crowds = |step: &CaseStep| matches!(step, CaseStep::Connect(_));
        if self.is_child() && case.steps.iter().any(crowds) {
            return Some("requires a server that accepts many connections".to_owned());
        }
        if let Some(lacking) = self.methods.lacks(case) {
            return Some(format!("requires {lacking}"));
        }
        if self.is_time_up() { Some(TIME_UP.to_owned()) } else { self.stop_reason.clone() }
    }

    /// Reports whether the time is up.
    fn is_time_up(&mut self) -> bool {
        let is_time_up = Instant::now() >= self.server_access.deadline;
        self.is_late |= is_time_up;
        is_time_up
    }

    async fn case(
        &mut self,
        cases: &[TranscriptCase],
        index: usize,
        before: &mut [CaseResult],
    ) -> CaseResult {
        let case = &cases[index];
        let is_fresh = case.facts.is_alone || case.is_raw();
        let spare = if is_fresh { None } else { self.spare.take() };
        let Some((connection, last)) = spare else {
            return self.run_on_new_connection(case, index, before).await;
        };
        let (passed, dialogue) = self.attempt(case, index, connection).await;
        let Err(finding) = passed else { return result_of(case, CaseStatus::Passed, None) };
        if finding.fault == FailureKind::Silent {
            return self.conclude(case, finding, dialogue).await;
        }
        if finding.fault == FailureKind::Closed
            && let Err(how) = self.ensure_alive().await
        {
            return crashed(case, &how, &finding, dialogue);
        }
        // An earlier case may have left this behind. Only a new connection can tell.
        let again = self.run_on_new_connection(case, index, before).await;
        if again.status != CaseStatus::Passed {
            return again;
        }
        match finding.fault {
            FailureKind::Extra if is_quiet(case) && !is_quiet(&cases[last]) => {
                // The reply belongs to this case. The second time, it arrived after the probe's.
                self.spare = None;
                return result_of_finding(case, finding, dialogue);
            }
            FailureKind::Extra | FailureKind::Crashed => blame(before, last, &finding),
            // The server may have closed the connection on its own.
            FailureKind::Closed | FailureKind::Silent => {}
            FailureKind::Wrong => {
                let last = before.get(last).map_or_else(String::new, |result| result.name.clone());
                let how = format!(
                    "the server fails only on a connection that earlier cases used (the last one: {last}); on a new connection it is correct"
                );
                return result_of_finding(case, finding.because(&how), dialogue);
            }
        }
        again
    }

    /// Runs the case on a new connection.
    async fn run_on_new_connection(
        &mut self,
        case: &TranscriptCase,
        index: usize,
        before: &mut [CaseResult],
    ) -> CaseResult {
        // Some servers take one connection at a time.
        if !self.is_child()
            && let Some((connection, _)) = self.spare.take()
        {
            connection.close().await;
        }
        let bare = self.wire == WireKind::Ws && begins_with_a_handshake(case);
        let mut connection = self.dial(bare).await;
        if let Err(fault) = &connection
            && let Err(how) = self.ensure_alive().await
        {
            // This case has sent nothing yet, so an earlier case caused the crash.
            blame_crash(before, &format!("{how}\nno connection: {fault}"));
            if let Some(stop_reason) = &self.stop_reason {
                return result_of(case, CaseStatus::NotRun, Some(stop_reason.clone()));
            }
            connection = self.dial(bare).await;
        }
        let connection = match connection {
            Ok(connection) => connection,
            Err(fault) => {
                self.was_time_up = Instant::now() >= self.server_access.deadline;
                let finding = Finding::new(FailureKind::Closed, format!("no connection: {fault}"));
                return self.conclude(case, finding, Vec::new()).await;
            }
        };
        match self.attempt(case, index, connection).await {
            (Ok(()), _) => result_of(case, CaseStatus::Passed, None),
            (Err(finding), dialogue) => self.conclude(case, finding, dialogue).await,
        }
    }

    async fn dial(&self, bare: bool) -> Result<ServerConnection, String> {
        if bare { self.server_access.connect(true).await } else { self.server_access.dial().await }
    }

    /// Runs the case on this connection, and keeps the connection if it is still usable.
    async fn attempt(
        &mut self,
        case: &TranscriptCase,
        index: usize,
        mut connection: ServerConnection,
    ) -> (Result<(), Finding>, Vec<DialogueLine>) {
        let mut case_run = CaseRun::new(case, &self.server_access, &self.methods, &mut connection);
        let outcome = case_run.run().await;
        let dialogue = DialogueLine::abridged(std::mem::take(&mut case_run.dialogue));
        drop(case_run);
        self.was_time_up = Instant::now() >= self.server_access.deadline;
        let outcome = match outcome {
            Ok(ConnectionAfter::UseAgain) => {
                if !case.is_raw() {
                    self.spare = Some((connection, index));
                }
                Ok(())
            }
            Ok(ConnectionAfter::ProbeElsewhere) => {
                connection.close().await;
                self.server_access.is_alive(&self.methods).await.map_err(|fault| {
                    Finding::new(FailureKind::Silent, format!("on the next connection: {fault}"))
                })
            }
            Err(finding) => Err(self.complete_finding(case, index, connection, finding).await),
        };
        (outcome, dialogue)
    }

    /// Completes a finding with what happened to its connection.
    async fn complete_finding(
        &mut self,
        case: &TranscriptCase,
        index: usize,
        mut connection: ServerConnection,
        finding: Finding,
    ) -> Finding {
        // A new process is expensive. A connection that still replies is used again.
        if matches!(finding.fault, FailureKind::Wrong | FailureKind::Silent)
            && self.is_child()
            && !case.is_raw()
            && self
                .server_access
                .call(&mut connection, &self.methods.method, &self.methods.params)
                .await
                .is_ok()
        {
            self.spare = Some((connection, index));
            return finding;
        }
        match connection.exit_status().await {
            Some(status) if finding.fault == FailureKind::Closed && !status.success() => {
                let how = format!("the process ended: {status}");
                Finding { fault: FailureKind::Crashed, ..finding.because(&how) }
            }
            _ => finding,
        }
    }

    /// Reports whether each connection is a process of its own.
    fn is_child(&self) -> bool {
        matches!(self.server_access.target.location, TargetLocation::Child(_))
    }

    /// Returns the result of a finding, and checks whether the server survived.
    async fn conclude(
        &mut self,
        case: &TranscriptCase,
        finding: Finding,
        dialogue: Vec<DialogueLine>,
    ) -> CaseResult {
        if matches!(finding.fault, FailureKind::Wrong | FailureKind::Extra) {
            // A server may crash shortly after a wrong reply.
            sleep(CRASH_DELAY).await;
        }
        match self.ensure_alive().await {
            Err(how) => crashed(case, &how, &finding, dialogue),
            Ok(()) => result_of_finding(case, finding, dialogue),
        }
    }

    /// Makes sure that the server replies. The error describes a crash, even if the server is back.
    async fn ensure_alive(&mut self) -> Result<(), String> {
        if self.is_child() {
            // The next connection starts a new process.
            return Ok(());
        }
        if let Some(server) = &mut self.server
            && let Some(ended) = server.ended().await
        {
            return self.restart(ended).await;
        }
        let Err(fault) = self.server_access.is_alive(&self.methods).await else { return Ok(()) };
        if self.server.is_some() {
            return self.restart(format!("the server no longer replies: {fault}")).await;
        }
        let deadline = Instant::now() + COMEBACK;
        while Instant::now() < deadline {
            sleep(STEP).await;
            if self.server_access.is_alive(&self.methods).await.is_ok() {
                return Err(format!("the server was unreachable for a while: {fault}"));
            }
        }
        self.is_gone = true;
        self.stop_reason =
            Some("the server no longer accepts connections; --spawn restarts it".to_owned());
        Err(format!("the server is gone: {fault}"))
    }

    async fn restart(&mut self, how: String) -> Result<(), String> {
        let Some(server) = &mut self.server else { return Err(how) };
        if let Err(failure) = server.restart(&self.server_access).await {
            self.is_gone = true;
            self.stop_reason = Some(format!("the server did not restart: {failure}"));
        }
        Err(how)
    }
}

/// Blames a late message on the case that caused it.
fn blame(before: &mut [CaseResult], last: usize, finding: &Finding) {
    let Some(earlier) = before.get_mut(last) else { return };
    if earlier.status == CaseStatus::Passed {
        earlier.status = CaseStatus::of(earlier.level, finding.fault);
        earlier.fault = Some(finding.fault);
        earlier.reason = Some(format!("after the reply to the next call: {}", finding.reason));
    }
}

/// Blames a crash on the last case that was run, although it got its reply.
fn blame_crash(before: &mut [CaseResult], how: &str) {
    let Some(last) = before.iter_mut().rev().find(|result| result.status != CaseStatus::NotRun)
    else {
        return;
    };
    let before_crash = last.reason.take().map(|reason| format!("\n{reason}")).unwrap_or_default();
    last.status = CaseStatus::of(last.level, FailureKind::Crashed);
    last.fault = Some(FailureKind::Crashed);
    last.reason = Some(format!("{how}{before_crash}"));
}

/// Returns the result of a case that the server did not survive.
fn crashed(
    case: &TranscriptCase,
    how: &str,
    finding: &Finding,
    dialogue: Vec<DialogueLine>,
) -> CaseResult {
    let reason = format!("{how}\n{}", finding.reason);
    result_of_finding(case, Finding::new(FailureKind::Crashed, reason), dialogue)
}

fn result_of_finding(
    case: &TranscriptCase,
    finding: Finding,
    dialogue: Vec<DialogueLine>,
) -> CaseResult {
    let status = CaseStatus::of(case.facts.level, finding.fault);
    let result = result_of(case, status, Some(finding.reason));
    CaseResult { fault: Some(finding.fault), dialogue, ..result }
}

fn result_of(case: &TranscriptCase, status: CaseStatus, reason: Option<String>) -> CaseResult {
    CaseResult {
        group: case.group.clone(),
        name: case.name.clone(),
        title: case.title.clone(),
        level: case.facts.level,
        section: case.facts.section.clone(),
        why: case.why.clone(),
        status,
        reason,
        fault: None,
        dialogue: Vec::new(),
    }
}

fn begins_with_a_handshake(case: &TranscriptCase) -> bool {
    matches!(case.steps.first(), Some(CaseStep::Raw(line)) if line.written.starts_with("GET "))
}

/// Reports whether the case expects no reply.
fn is_quiet(case: &TranscriptCase) -> bool {
    case.steps.iter().any(|step| matches!(step, CaseStep::Nothing))
}

/// Reports whether the values framing can carry the step.
fn is_value(step: &CaseStep) -> bool {
    match step {
        CaseStep::Send(text) => {
            String::from_utf8(text.bytes()).is_ok_and(|text| Json::parse(&text).is_ok())
        }
        CaseStep::Raw(_) => false,
        _ => true,
    }
}
