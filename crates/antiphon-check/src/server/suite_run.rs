//! The run of the suite: one case after the other, even if the server crashes.
//!
//! Cases share a connection while it is usable. After a finding, the next case gets a new connection. A
//! process is expensive, so a finding does not end its connection, and is confirmed there.

use tokio::time::{Instant, sleep};

use super::case_outcome::{blame_crash, crashed, result_of, result_of_finding};
use super::case_run::{CaseRun, ConnectionAfter};
use super::connection::ServerConnection;
use super::mcp::FoundEra;
use super::methods::ServerMethods;
use super::server_access::ServerAccess;
use super::spawned_server::SpawnedServer;
use super::stray_message;
use crate::raw::TargetLocation;
use crate::result::{CaseResult, CaseStatus, DialogueLine, FailureKind, Finding};
use crate::transcript::{CaseStep, TranscriptCase, WireKind};

/// The time for a server to crash after a wrong reply.
const CRASH_DELAY: std::time::Duration = std::time::Duration::from_millis(25);
const TIME_UP: &str = "the time limit was reached; --budget sets a longer one";

/// A running suite.
pub(super) struct SuiteRun {
    pub(super) server_access: ServerAccess,
    pub(super) methods: ServerMethods,
    pub(super) wire: WireKind,
    pub(super) is_hostile: bool,
    pub(super) server: Option<SpawnedServer>,
    spare: Option<SpareConnection>,
    /// The reason why no more cases can be run.
    pub(super) stop_reason: Option<String>,
    /// The server went away for good.
    pub(super) is_gone: bool,
    /// The time was up before all cases were run.
    pub(super) is_late: bool,
    /// The eras of an MCP server that are not checked yet.
    pub(super) later_eras: Vec<FoundEra>,
    /// The time was up at the last finding. Such a finding says nothing about the server. The search for
    /// a crash after a finding does not count.
    was_time_up: bool,
}

/// A usable connection.
struct SpareConnection {
    connection: ServerConnection,
    /// The cases that used it, in order.
    users: Vec<usize>,
}

/// What happened when a case was run once.
struct Attempt {
    outcome: Result<(), Finding>,
    dialogue: Vec<DialogueLine>,
    /// Messages that only an earlier case can have caused.
    left_behind: Vec<Vec<u8>>,
    /// Messages that an earlier case or this one has caused.
    in_doubt: Vec<Vec<u8>>,
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
            later_eras: Vec::new(),
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
            let mut found = match self.obstacle(case) {
                Some(reason) => result_of(case, CaseStatus::NotRun, Some(reason)),
                None => {
                    self.server_access.timing.attacks(case.facts.is_hostile);
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
        if let Some(spare) = self.spare.take() {
            spare.connection.close().await;
        }
        all
    }

    /// Returns the reason why this case cannot be run.
    fn obstacle(&mut self, case: &TranscriptCase) -> Option<String> {
        if let Some(reason) = self.inapplicable_reason(case) {
            return Some(reason);
        }
        if self.is_time_up() { Some(TIME_UP.to_owned()) } else { self.stop_reason.clone() }
    }

    /// Reports whether the time is up.
    fn is_time_up(&mut self) -> bool {
        let is_time_up = Instant::now() >= self.server_access.timing.deadline;
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
        let is_fresh = case.facts.is_alone
            || case.facts.is_without_handshake
            || (case.is_raw() && !self.is_child());
        let spare = if is_fresh { None } else { self.spare.take() };
        let Some(spare) = spare else {
            return self.run_on_new_connection(cases, index, before).await;
        };
        let users = spare.users.clone();
        let Attempt { outcome, dialogue, mut left_behind, in_doubt } =
            self.attempt(cases, index, spare).await;
        let Err(finding) = outcome else {
            self.settle(&left_behind, &users, cases, before);
            return result_of(case, CaseStatus::Passed, None);
        };
        if finding.fault == FailureKind::Silent && left_behind.is_empty() {
            return self.conclude(case, finding, dialogue).await;
        }
        if finding.fault == FailureKind::Closed
            && let Err(how) = self.ensure_alive().await
        {
            return crashed(case, &how, &finding, dialogue);
        }
        let is_confirmed = self.is_confirmed(cases, index, &finding).await;
        if is_confirmed && self.is_child() {
            return self.conclude(case, finding, dialogue).await;
        }
        // The connection may be the cause. Only a new one can tell.
        let again = self.run_on_new_connection(cases, index, before).await;
        if again.status != CaseStatus::Passed {
            return again;
        }
        let last = users.last().copied().unwrap_or_default();
        match finding.fault {
            FailureKind::Extra if is_quiet(case) && !is_quiet(&cases[last]) => {
                // The reply belongs to this case. The second time, it arrived after the probe's.
                self.spare = None;
                return result_of_finding(case, finding, dialogue);
            }
            FailureKind::Extra if !is_confirmed && !in_doubt.is_empty() => {
                left_behind.extend(in_doubt);
            }
            FailureKind::Extra | FailureKind::Wrong | FailureKind::Silent => {
                // The messages may be wrong replies to this case, so they are no findings of others.
                for message in &left_behind {
                    stray_message::clear(message, &users, cases, before, &self.methods);
                }
                let finding = only_when_used(&finding, &cases[last]);
                return result_of_finding(case, finding, dialogue);
            }
            FailureKind::Crashed => stray_message::charge_passed(before.get_mut(last), &finding),
            // The server may have closed the connection on its own.
            FailureKind::Closed => left_behind.clear(),
        }
        self.settle(&left_behind, &users, cases, before);
        again
    }

    /// Adds findings to the earlier cases that unexpected messages belong to.
    fn settle(
        &self,
        messages: &[Vec<u8>],
        users: &[usize],
        cases: &[TranscriptCase],
        results: &mut [CaseResult],
    ) {
        for message in messages {
            stray_message::settle(message, users, cases, results, &self.methods);
        }
    }

    /// Reports whether the case has the same finding again on its connection. A message that an earlier case left
    /// behind arrives only once.
    async fn is_confirmed(
        &mut self,
        cases: &[TranscriptCase],
        index: usize,
        finding: &Finding,
    ) -> bool {
        if !matches!(finding.fault, FailureKind::Wrong | FailureKind::Extra) {
            return false;
        }
        let Some(spare) = self.spare.take() else { return false };
        let again = self.attempt(cases, index, spare).await;
        if finding.fault == FailureKind::Extra {
            // More messages may follow.
            self.spare = None;
        }
        again
            .outcome
            .is_err_and(|second| (second.fault, &second.reason) == (finding.fault, &finding.reason))
    }

    /// Runs the case on a new connection.
    async fn run_on_new_connection(
        &mut self,
        cases: &[TranscriptCase],
        index: usize,
        before: &mut [CaseResult],
    ) -> CaseResult {
        let case = &cases[index];
        // Some servers take one connection at a time.
        if !self.is_child()
            && let Some(spare) = self.spare.take()
        {
            spare.connection.close().await;
        }
        let bare = self.wire == WireKind::Ws && begins_with_a_handshake(case);
        let mut connection = self.dial(bare, case).await;
        if let Err(fault) = &connection
            && let Err(how) = self.ensure_alive().await
        {
            // This case has sent nothing yet, so an earlier case caused the crash.
            blame_crash(before, &format!("{how}\nno connection: {fault}"));
            if let Some(stop_reason) = &self.stop_reason {
                return result_of(case, CaseStatus::NotRun, Some(stop_reason.clone()));
            }
            connection = self.dial(bare, case).await;
        }
        let connection = match connection {
            Ok(connection) => connection,
            Err(fault) => {
                self.was_time_up = Instant::now() >= self.server_access.timing.deadline;
                let finding = Finding::new(FailureKind::Closed, format!("no connection: {fault}"));
                return self.conclude(case, finding, Vec::new()).await;
            }
        };
        let new = SpareConnection { connection, users: Vec::new() };
        let Attempt { outcome, dialogue, .. } = self.attempt(cases, index, new).await;
        match outcome {
            Ok(()) => result_of(case, CaseStatus::Passed, None),
            Err(finding) => self.conclude(case, finding, dialogue).await,
        }
    }

    async fn dial(&self, bare: bool, case: &TranscriptCase) -> Result<ServerConnection, String> {
        match bare || case.facts.is_without_handshake {
            true => self.server_access.connect(bare).await,
            false => self.server_access.dial().await,
        }
    }

    /// Runs the case on this connection, and keeps the connection if it is still usable.
    async fn attempt(
        &mut self,
        cases: &[TranscriptCase],
        index: usize,
        mut spare: SpareConnection,
    ) -> Attempt {
        let case = &cases[index];
        let earlier: Vec<&TranscriptCase> = spare.users.iter().map(|user| &cases[*user]).collect();
        let is_used = !earlier.is_empty();
        spare.users.push(index);
        let mut case_run =
            CaseRun::new(case, &self.server_access, &self.methods, &mut spare.connection, earlier);
        let outcome = case_run.run().await;
        let dialogue = DialogueLine::abridged(std::mem::take(&mut case_run.dialogue));
        let left_behind = std::mem::take(&mut case_run.left_behind);
        let in_doubt = std::mem::take(&mut case_run.in_doubt);
        drop(case_run);
        self.was_time_up = Instant::now() >= self.server_access.timing.deadline;
        let outcome = match outcome {
            Ok(ConnectionAfter::UseAgain) => {
                if !case.is_raw() || self.is_child() {
                    self.spare = Some(spare);
                }
                Ok(())
            }
            // A new process says nothing about the old one.
            Ok(ConnectionAfter::ProbeElsewhere)
                if self.is_child() && case.facts.is_without_handshake =>
            {
                spare.connection.close().await;
                Ok(())
            }
            Ok(ConnectionAfter::ProbeElsewhere) => {
                spare.connection.close().await;
                self.server_access.is_alive(&self.methods).await.map_err(|fault| {
                    Finding::new(FailureKind::Silent, format!("on the next connection: {fault}"))
                })
            }
            Err(finding) => Err(self.complete_finding(case, spare, finding, is_used).await),
        };
        Attempt { outcome, dialogue, left_behind, in_doubt }
    }

    /// Completes a finding with what happened to its connection.
    async fn complete_finding(
        &mut self,
        case: &TranscriptCase,
        mut spare: SpareConnection,
        finding: Finding,
        is_used: bool,
    ) -> Finding {
        let is_kept = match finding.fault {
            FailureKind::Wrong | FailureKind::Silent => self.is_child(),
            // The case is run again on this connection: an earlier case may have caused the message.
            FailureKind::Extra => is_used && !self.server_access.is_http(),
            FailureKind::Closed | FailureKind::Crashed => false,
        };
        if is_kept
            && !case.is_raw()
            && !case.facts.is_without_handshake
            && self
                .server_access
                .call(&mut spare.connection, &self.methods.method, &self.methods.params)
                .await
                .is_ok()
        {
            self.spare = Some(spare);
            return finding;
        }
        if finding.fault != FailureKind::Closed {
            return finding;
        }
        match spare.connection.exit_status().await {
            Some(status) if !status.success() => {
                let how = format!("the process ended: {status}");
                Finding { fault: FailureKind::Crashed, ..finding.because(&how) }
            }
            _ => finding,
        }
    }

    /// Reports whether each connection is a process of its own.
    pub(super) fn is_child(&self) -> bool {
        is_child(&self.server_access)
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
}

fn is_child(server_access: &ServerAccess) -> bool {
    matches!(server_access.target.location, TargetLocation::Child(_))
}

/// Adds to a finding that it needs a connection that other cases used.
fn only_when_used(finding: &Finding, last: &TranscriptCase) -> Finding {
    let last = &last.name;
    finding.clone().because(&format!(
        "the server fails only on a connection that earlier cases used (the last one: {last}); on a new connection it is correct"
    ))
}

fn begins_with_a_handshake(case: &TranscriptCase) -> bool {
    matches!(case.steps.first(), Some(CaseStep::Raw(line)) if line.written.starts_with("GET "))
}

/// Reports whether the case expects no reply.
fn is_quiet(case: &TranscriptCase) -> bool {
    case.steps.iter().any(|step| matches!(step, CaseStep::Nothing))
}
