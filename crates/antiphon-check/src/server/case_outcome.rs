//! Converts the events of a case into its result.

use crate::result::{CaseResult, CaseStatus, DialogueLine, FailureKind, Finding};
use crate::transcript::TranscriptCase;

use super::stray_message::charge;

/// Returns the result of a case without a finding.
pub(super) fn result_of(
    case: &TranscriptCase,
    status: CaseStatus,
    reason: Option<String>,
) -> CaseResult {
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

pub(super) fn result_of_finding(
    case: &TranscriptCase,
    finding: Finding,
    dialogue: Vec<DialogueLine>,
) -> CaseResult {
    let status = CaseStatus::of(case.facts.level, finding.fault);
    let result = result_of(case, status, Some(finding.reason));
    CaseResult { fault: Some(finding.fault), dialogue, ..result }
}

/// Returns the result of a case that crashed the server.
pub(super) fn crashed(
    case: &TranscriptCase,
    how: &str,
    finding: &Finding,
    dialogue: Vec<DialogueLine>,
) -> CaseResult {
    let reason = format!("{how}\n{}", finding.reason);
    result_of_finding(case, Finding::new(FailureKind::Crashed, reason), dialogue)
}

/// Records a crash as the result of the last case, even if that case got its reply.
pub(super) fn blame_crash(before: &mut [CaseResult], how: &str) {
    let Some(last) = before.iter_mut().rev().find(|result| result.status != CaseStatus::NotRun)
    else {
        return;
    };
    let before_crash = last.reason.take().map(|reason| format!("\n{reason}")).unwrap_or_default();
    charge(last, &Finding::new(FailureKind::Crashed, format!("{how}{before_crash}")));
}
