//! What went over the wire while a scenario was on?
//!
//! Bounded: a client that floods is written down in part, and counted in whole.

use super::received::{ReceivedCalls, ReceivedMessage};
use crate::result::{DialogueLine, shortened};
use crate::transcript::json::Json;

/// Lines that are kept of one scenario, and Responses, and pongs.
const MAX_LINES: usize = 64;

/// A fault in what the client sent.
#[derive(Clone, Debug)]
pub(super) struct MessageFault {
    /// The check that it breaks.
    pub(super) check: &'static str,
    pub(super) reason: String,
    /// What was sent.
    pub(super) shown: Option<String>,
}

/// What one scenario saw.
#[derive(Debug, Default)]
pub(super) struct ScenarioRecord {
    pub(super) lines: Vec<DialogueLine>,
    pub(super) faults: Vec<MessageFault>,
    /// The client speaks HTTP/1.0.
    pub(super) is_old: bool,
    /// Messages that the client sent.
    pub(super) messages: usize,
    /// Calls among them.
    pub(super) calls: usize,
    /// Batches with calls.
    pub(super) batches: usize,
    /// Calls that are no batch.
    pub(super) singles: usize,
    /// The most messages with calls that were under way at once on one connection.
    pub(super) in_flight: usize,
    /// The most calls.
    pub(super) calls_in_flight: usize,
    /// Responses that the client sent.
    pub(super) replies: Vec<Json>,
    /// Payloads of pongs.
    pub(super) pongs: Vec<Vec<u8>>,
    /// Whether a close frame came.
    pub(super) said_goodbye: bool,
}

impl ScenarioRecord {
    pub(super) fn sent(&mut self, what: &[u8]) {
        self.line(DialogueLine::sent(what.trim_ascii_end()));
    }

    pub(super) fn event(&mut self, what: &[u8]) {
        self.line(DialogueLine::received(what.trim_ascii_end()));
    }

    fn line(&mut self, line: DialogueLine) {
        if self.lines.len() < MAX_LINES {
            self.lines.push(line);
        }
    }

    pub(super) fn message(&mut self, message: &[u8], parsed: &ReceivedMessage) {
        self.event(message);
        self.messages += 1;
        if let Some(received) = &parsed.received {
            self.calls += received.calls.len();
            self.batches += usize::from(received.is_batch);
            self.singles += usize::from(!received.is_batch);
        }
        for (check, reason) in &parsed.faults {
            self.fault(check, reason.clone(), Some(message));
        }
        let room = MAX_LINES.saturating_sub(self.replies.len());
        self.replies.extend(parsed.replies.iter().take(room).cloned());
    }

    pub(super) fn pong(&mut self, payload: Vec<u8>) {
        self.event(b"(a pong)");
        if self.pongs.len() < MAX_LINES {
            self.pongs.push(payload);
        }
    }

    pub(super) fn goodbye(&mut self) {
        self.event(b"(a close frame)");
        self.said_goodbye = true;
    }

    pub(super) fn fault(
        &mut self,
        check: &'static str,
        reason: impl Into<String>,
        message: Option<&[u8]>,
    ) {
        // The first one of its kind says it all.
        if !self.faults.iter().any(|known| known.check == check) {
            self.faults.push(MessageFault {
                check,
                reason: reason.into(),
                shown: message.map(shortened),
            });
        }
    }

    /// These are all under way at once.
    pub(super) fn under_way(&mut self, received: &[ReceivedCalls]) {
        let calls = received.iter().flat_map(|received| &received.calls);
        let ids: Vec<&str> = calls.map(|call| call.id.as_str()).collect();
        self.in_flight = self.in_flight.max(received.len());
        self.calls_in_flight = self.calls_in_flight.max(ids.len());
        for (at, id) in ids.iter().enumerate() {
            if ids[..at].contains(id) {
                self.fault("ids-unique", format!("two calls under way have the id {id}"), None);
            }
        }
    }
}
