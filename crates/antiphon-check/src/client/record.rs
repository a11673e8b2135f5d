//! The record of a scenario: messages, faults and counts.
//!
//! It is bounded: of a flood, it keeps the first messages and counts the rest.

use super::received::{ReceivedCalls, ReceivedMessage};
use crate::result::{DialogueLine, shortened};
use crate::transcript::json::Json;

/// The limit of recorded lines, Responses and pongs.
const MAX_LINES: usize = 64;

/// A fault in what the client sent.
#[derive(Clone, Debug)]
pub(super) struct MessageFault {
    /// The check that it breaks.
    pub(super) check: &'static str,
    pub(super) reason: String,
    /// The message.
    pub(super) shown: Option<String>,
}

/// The record of one scenario.
#[derive(Debug, Default)]
pub(super) struct ScenarioRecord {
    pub(super) lines: Vec<DialogueLine>,
    pub(super) faults: Vec<MessageFault>,
    /// The client speaks HTTP/1.0.
    pub(super) is_http10: bool,
    /// Messages that the client sent.
    pub(super) messages: usize,
    /// Calls among them.
    pub(super) calls: usize,
    /// Batches with calls.
    pub(super) batches: usize,
    /// Single calls.
    pub(super) singles: usize,
    /// The largest number of messages with calls in flight on one connection.
    pub(super) in_flight: usize,
    /// The largest number of calls in flight.
    pub(super) calls_in_flight: usize,
    /// Responses that the client sent.
    pub(super) replies: Vec<Json>,
    /// Payloads of pongs.
    pub(super) pongs: Vec<Vec<u8>>,
    /// The client sent a close frame.
    pub(super) has_close_frame: bool,
}

impl ScenarioRecord {
    pub(super) fn sent(&mut self, what: &[u8]) {
        self.line(DialogueLine::sent(what.trim_ascii_end()));
    }

    pub(super) fn received(&mut self, what: &[u8]) {
        self.line(DialogueLine::received(what.trim_ascii_end()));
    }

    fn line(&mut self, line: DialogueLine) {
        if self.lines.len() < MAX_LINES {
            self.lines.push(line);
        }
    }

    pub(super) fn message(&mut self, message: &[u8], parsed: &ReceivedMessage) {
        self.received(message);
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
        self.received(b"(a pong)");
        if self.pongs.len() < MAX_LINES {
            self.pongs.push(payload);
        }
    }

    pub(super) fn close_frame(&mut self) {
        self.received(b"(a close frame)");
        self.has_close_frame = true;
    }

    pub(super) fn fault(
        &mut self,
        check: &'static str,
        reason: impl Into<String>,
        message: Option<&[u8]>,
    ) {
        // The first fault of a check is enough.
        if !self.faults.iter().any(|known| known.check == check) {
            self.faults.push(MessageFault {
                check,
                reason: reason.into(),
                shown: message.map(shortened),
            });
        }
    }

    /// Records messages that are in flight at once.
    pub(super) fn in_flight(&mut self, received: &[ReceivedCalls]) {
        let calls = received.iter().flat_map(|received| &received.calls);
        let ids: Vec<&str> = calls.map(|call| call.id.as_str()).collect();
        self.in_flight = self.in_flight.max(received.len());
        self.calls_in_flight = self.calls_in_flight.max(ids.len());
        for (at, id) in ids.iter().enumerate() {
            if ids[..at].contains(id) {
                self.fault("ids-unique", format!("two calls in flight have the id {id}"), None);
            }
        }
    }
}
