//! The whole run: case after case, and on whatever becomes of the server.
//!
//! A connection is used again while cases leave it in order. After a finding the next case gets a new
//! one; a server that died is started again where `--spawn` says how, and waited for where not. One
//! that stays away ends the run: what is left says why it was not run.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::case_run::{CaseRun, ConnectionAfter};
use super::connection::ServerConnection;
use super::dialer::Dialer;
use super::methods::ServerMethods;
use super::spawned_server::SpawnedServer;
use crate::raw::TargetLocation;
use crate::result::{CaseResult, CaseStatus, DialogueLine, FailureKind, Finding};
use crate::transcript::json::Json;
use crate::transcript::{CaseStep, TranscriptCase, WireKind};

/// How long a server that is gone may stay away.
const COMEBACK: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(50);
/// How long a server may live on after what it dies of.
const LAST_BREATH: Duration = Duration::from_millis(25);
const UP: &str = "the time was up: --budget gives more";

/// A run under way.
pub(super) struct SuiteRun {
    pub(super) dialer: Dialer,
    pub(super) methods: ServerMethods,
    pub(super) wire: WireKind,
    pub(super) is_hostile: bool,
    pub(super) server: Option<SpawnedServer>,
    /// A connection that the last case left in order, and which case that was.
    spare: Option<(ServerConnection, usize)>,
    /// Why nothing can be run any more.
    over: Option<String>,
    /// Whether the server went away for good.
    pub(super) is_gone: bool,
    /// Whether the time was up before all was run.
    pub(super) is_late: bool,
    /// Whether the time was up when the last finding was made: what was cut short says nothing about
    /// the server. That it is looked for afterwards may take what time it will.
    is_cut: bool,
}

impl SuiteRun {
    pub(super) fn new(
        dialer: Dialer,
        methods: ServerMethods,
        wire: WireKind,
        server: Option<SpawnedServer>,
        is_hostile: bool,
    ) -> Self {
        let (spare, over) = (None, None);
        let (is_gone, is_late, is_cut) = (false, false, false);
        Self { dialer, methods, wire, is_hostile, server, spare, over, is_gone, is_late, is_cut }
    }

    /// Runs each case in turn; `seen` is told how many are done.
    pub(super) async fn evaluate(
        &mut self,
        cases: &[TranscriptCase],
        seen: impl Fn(usize, &TranscriptCase),
    ) -> Vec<CaseResult> {
        let mut all = Vec::with_capacity(cases.len());
        for (index, case) in cases.iter().enumerate() {
            seen(index, case);
            let obstacle = self.obstacle(case);
            let mut found = match obstacle {
                Some(reason) => result_of(case, CaseStatus::NotRun, Some(reason)),
                None => {
                    self.dialer.attacks(case.facts.is_hostile);
                    self.case(cases, index, &mut all).await
                }
            };
            if matches!(found.status, CaseStatus::Failed | CaseStatus::Warned | CaseStatus::Differs)
                && self.is_cut
            {
                self.is_late = true;
                found = result_of(case, CaseStatus::NotRun, Some(UP.to_owned()));
            }
            all.push(found);
        }
        if let Some((connection, _)) = self.spare.take() {
            connection.close().await;
        }
        all
    }

    /// Why this case cannot be run here.
    fn obstacle(&mut self, case: &TranscriptCase) -> Option<String> {
        let (facts, profile) = (&case.facts, self.dialer.profile);
        if !facts.fits(self.wire) {
            return Some(match &facts.only[..] {
                [] => "it cannot be expressed over this wire".to_owned(),
                only => {
                    let names: Vec<String> = only.iter().map(ToString::to_string).collect();
                    format!("it is about {}", names.join(", "))
                }
            });
        }
        if !facts.profiles.is_empty() && !facts.profiles.contains(&profile) {
            let names: Vec<String> = facts.profiles.iter().map(ToString::to_string).collect();
            return Some(format!("it is for --profile {}", names.join(", ")));
        }
        if facts.unless.contains(&profile) {
            return Some(format!("{profile} deviates here on purpose"));
        }
        if facts.is_hostile && !self.is_hostile {
            return Some("it is an attack: --hostile runs it".to_owned());
        }
        if self.wire == WireKind::Values && !case.steps.iter().all(is_value) {
            return Some("values cannot tell where a broken text ends".to_owned());
        }
        let crowds = |step: &CaseStep| matches!(step, CaseStep::Crowd(_));
        if self.is_child() && case.steps.iter().any(crowds) {
            return Some("it needs a server that takes many connections".to_owned());
        }
        if let Some(lacking) = self.methods.lacks(case) {
            return Some(format!("the server lacks {lacking}"));
        }
        if self.is_up() { Some(UP.to_owned()) } else { self.over.clone() }
    }

    /// Whether there is no time left.
    fn is_up(&mut self) -> bool {
        let is_up = Instant::now() >= self.dialer.deadline;
        self.is_late |= is_up;
        is_up
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
        let Some((connection, last)) = spare else { return self.afresh(case, index, before).await };
        let (passed, dialogue) = self.attempt(case, index, connection).await;
        let Err(finding) = passed else { return result_of(case, CaseStatus::Passed, None) };
        if finding.fault == FailureKind::Silent {
            return self.found(case, finding, dialogue).await;
        }
        if finding.fault == FailureKind::Closed
            && let Err(how) = self.revive().await
        {
            return crashed(case, &how, &finding, dialogue);
        }
        // It may be what an earlier case left behind: only a connection of its own can tell.
        let again = self.afresh(case, index, before).await;
        if again.status != CaseStatus::Passed {
            return again;
        }
        match finding.fault {
            FailureKind::Extra if is_quiet(case) && !is_quiet(&cases[last]) => {
                // Its own answer, which the second time came behind the probe's.
                self.spare = None;
                return against(case, finding, dialogue);
            }
            FailureKind::Extra | FailureKind::Crashed => blame(before, last, &finding),
            // It may have ended by itself meanwhile.
            FailureKind::Closed | FailureKind::Silent => {}
            FailureKind::Wrong => {
                let last = before.get(last).map_or_else(String::new, |result| result.name.clone());
                let how = format!(
                    "only on a connection that was used before, the last time by {last}: on one of its own it is right"
                );
                return against(case, finding.because(&how), dialogue);
            }
        }
        again
    }

    /// Runs it on a connection of its own.
    async fn afresh(
        &mut self,
        case: &TranscriptCase,
        index: usize,
        before: &mut [CaseResult],
    ) -> CaseResult {
        // Some serve one connection at a time.
        if !self.is_child()
            && let Some((connection, _)) = self.spare.take()
        {
            connection.close().await;
        }
        let bare = self.wire == WireKind::Ws && begins_with_a_handshake(case);
        let mut connection = self.dial(bare).await;
        if let Err(fault) = &connection
            && let Err(how) = self.revive().await
        {
            // Nothing of this case was sent: it is the fault of what was sent before.
            blame_crash(before, &format!("{how}\nno connection: {fault}"));
            if let Some(over) = &self.over {
                return result_of(case, CaseStatus::NotRun, Some(over.clone()));
            }
            connection = self.dial(bare).await;
        }
        let connection = match connection {
            Ok(connection) => connection,
            Err(fault) => {
                self.is_cut = Instant::now() >= self.dialer.deadline;
                let finding = Finding::new(FailureKind::Closed, format!("no connection: {fault}"));
                return self.found(case, finding, Vec::new()).await;
            }
        };
        match self.attempt(case, index, connection).await {
            (Ok(()), _) => result_of(case, CaseStatus::Passed, None),
            (Err(finding), dialogue) => self.found(case, finding, dialogue).await,
        }
    }

    async fn dial(&self, bare: bool) -> Result<ServerConnection, String> {
        if bare { self.dialer.connect(true).await } else { self.dialer.dial().await }
    }

    /// Runs it on this connection, which is kept where it can be used again.
    async fn attempt(
        &mut self,
        case: &TranscriptCase,
        index: usize,
        mut connection: ServerConnection,
    ) -> (Result<(), Finding>, Vec<DialogueLine>) {
        let mut case_run = CaseRun::new(case, &self.dialer, &self.methods, &mut connection);
        let outcome = case_run.run().await;
        let dialogue = DialogueLine::abridged(std::mem::take(&mut case_run.dialogue));
        drop(case_run);
        self.is_cut = Instant::now() >= self.dialer.deadline;
        let outcome = match outcome {
            Ok(ConnectionAfter::UseAgain) => {
                if !case.is_raw() {
                    self.spare = Some((connection, index));
                }
                Ok(())
            }
            Ok(ConnectionAfter::ProbeElsewhere) => {
                connection.close().await;
                self.dialer.is_alive(&self.methods).await.map_err(|fault| {
                    Finding::new(FailureKind::Silent, format!("on the next connection: {fault}"))
                })
            }
            Err(finding) => Err(self.aftermath(case, index, connection, finding).await),
        };
        (outcome, dialogue)
    }

    /// What became of a connection on which something was found.
    async fn aftermath(
        &mut self,
        case: &TranscriptCase,
        index: usize,
        mut connection: ServerConnection,
        finding: Finding,
    ) -> Finding {
        // A process of its own is costly to start: what still answers is used again.
        if matches!(finding.fault, FailureKind::Wrong | FailureKind::Silent)
            && self.is_child()
            && !case.is_raw()
            && self
                .dialer
                .ask(&mut connection, &self.methods.method, &self.methods.params)
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

    /// Whether each connection is a process of its own.
    fn is_child(&self) -> bool {
        matches!(self.dialer.target.location, TargetLocation::Child(_))
    }

    /// A finding, and whether the server outlived the case.
    async fn found(
        &mut self,
        case: &TranscriptCase,
        finding: Finding,
        dialogue: Vec<DialogueLine>,
    ) -> CaseResult {
        if matches!(finding.fault, FailureKind::Wrong | FailureKind::Extra) {
            // Who is about to die of it gets the time to.
            sleep(LAST_BREATH).await;
        }
        match self.revive().await {
            Err(how) => crashed(case, &how, &finding, dialogue),
            Ok(()) => against(case, finding, dialogue),
        }
    }

    /// Makes sure that the server answers; says how it was found, if it had to be waited for.
    async fn revive(&mut self) -> Result<(), String> {
        if self.is_child() {
            // The next connection is a process of its own.
            return Ok(());
        }
        if let Some(server) = &mut self.server
            && let Some(ended) = server.ended().await
        {
            return self.restart(ended).await;
        }
        let Err(fault) = self.dialer.is_alive(&self.methods).await else { return Ok(()) };
        if self.server.is_some() {
            return self.restart(format!("the server no longer answers: {fault}")).await;
        }
        let deadline = Instant::now() + COMEBACK;
        while Instant::now() < deadline {
            sleep(STEP).await;
            if self.dialer.is_alive(&self.methods).await.is_ok() {
                return Err(format!("the server was gone for a while: {fault}"));
            }
        }
        self.is_gone = true;
        self.over = Some("the server was gone by then; --spawn starts it again".to_owned());
        Err(format!("the server is gone: {fault}"))
    }

    async fn restart(&mut self, how: String) -> Result<(), String> {
        let Some(server) = &mut self.server else { return Err(how) };
        if let Err(failure) = server.restart(&self.dialer).await {
            self.is_gone = true;
            self.over = Some(format!("the server did not start again: {}", failure));
        }
        Err(how)
    }
}

/// What came late is the fault of the case that it belongs to.
fn blame(before: &mut [CaseResult], last: usize, finding: &Finding) {
    let Some(earlier) = before.get_mut(last) else { return };
    if earlier.status == CaseStatus::Passed {
        earlier.status = CaseStatus::of(earlier.level, finding.fault);
        earlier.fault = Some(finding.fault);
        earlier.reason = Some(format!("after the next call was answered: {}", finding.reason));
    }
}

/// The last case that was run has killed the server, though it was answered.
fn blame_crash(before: &mut [CaseResult], how: &str) {
    let Some(last) = before.iter_mut().rev().find(|result| result.status != CaseStatus::NotRun)
    else {
        return;
    };
    let told = last.reason.take().map(|reason| format!("\n{reason}")).unwrap_or_default();
    last.status = CaseStatus::of(last.level, FailureKind::Crashed);
    last.fault = Some(FailureKind::Crashed);
    last.reason = Some(format!("{how}{told}"));
}

/// The server did not outlive it.
fn crashed(
    case: &TranscriptCase,
    how: &str,
    finding: &Finding,
    dialogue: Vec<DialogueLine>,
) -> CaseResult {
    let reason = format!("{how}\n{}", finding.reason);
    against(case, Finding::new(FailureKind::Crashed, reason), dialogue)
}

fn against(case: &TranscriptCase, finding: Finding, dialogue: Vec<DialogueLine>) -> CaseResult {
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

/// Whether it sends something that is not answered.
fn is_quiet(case: &TranscriptCase) -> bool {
    case.steps.iter().any(|step| matches!(step, CaseStep::Nothing))
}

/// Whether a stream of values can carry it.
fn is_value(step: &CaseStep) -> bool {
    match step {
        CaseStep::Send(text) => {
            String::from_utf8(text.bytes()).is_ok_and(|text| Json::parse(&text).is_ok())
        }
        CaseStep::Raw(_) => false,
        _ => true,
    }
}
