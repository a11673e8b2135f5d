//! Messages that wait for a reply, and the matching of replies to them.
//!
//! Invariant: a message is removed once, by its reply or by a failure. A reply that matches no pending
//! message is never a success.

use std::collections::VecDeque;

use super::reply_checker::{CheckedReply, ReplyChecker};
use super::stats::{FailedCallKind, FailedCalls, RoundStats};

/// The maximum distance between the newest message and the oldest one without a reply.
const MAX_SPAN: usize = 1 << 20;

/// Replaces the send time of a message whose reply has arrived.
const ANSWERED: u64 = u64::MAX;

/// The pending messages of one connection.
pub(super) struct PendingMessages {
    checker: ReplyChecker,
    /// Calls per message.
    calls: u64,
    /// Whether replies arrive in the order of the calls, as over HTTP.
    is_ordered: bool,
    /// The start time for the latency of each message, from the oldest pending one.
    sent: VecDeque<u64>,
    /// The number of messages before that one.
    gone: u64,
    waiting: usize,
    /// The number of replies.
    pub(super) replies: u64,
}

impl PendingMessages {
    pub(super) fn new(checker: ReplyChecker, calls: u64, is_ordered: bool) -> Self {
        let (sent, gone, waiting, replies) = (VecDeque::new(), 0, 0, 0);
        Self { checker, calls, is_ordered, sent, gone, waiting, replies }
    }

    /// Returns the number of messages that wait for a reply.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < MAX_SPAN
    }

    /// Adds a message whose latency counts from this time.
    pub(super) fn push(&mut self, from: u64) {
        self.sent.push_back(from);
        self.waiting += 1;
    }

    /// Records a reply. Returns an error, which ends the connection, if it matches no message.
    pub(super) fn reply(
        &mut self,
        text: &[u8],
        now: u64,
        stats: &mut RoundStats,
    ) -> Result<(), FailedCalls> {
        let Some(first) = self.checker.matches_template(text) else {
            return self.record(text, now, stats);
        };
        let Some(from) = self.settle(first) else { return self.stray(Some(first), now, stats) };
        stats.record_reply(self.calls, from, now);
        Ok(())
    }

    /// Records an HTTP response without a JSON-RPC reply.
    pub(super) fn refusal(&mut self, failed: FailedCalls, now: u64, stats: &mut RoundStats) {
        self.settle_only();
        stats.record_failure(FailedCalls { calls: self.calls, ..failed }, now);
    }

    /// Removes all pending messages and returns the number of their calls.
    pub(super) fn give_up(&mut self) -> u64 {
        self.sent.clear();
        std::mem::take(&mut self.waiting) as u64 * self.calls
    }

    fn record(&mut self, text: &[u8], now: u64, stats: &mut RoundStats) -> Result<(), FailedCalls> {
        let (first, right, mut failures) = match self.checker.check(text) {
            CheckedReply::ServerMessage if self.is_ordered => {
                let what = "a request from the server instead of a response";
                (None, 0, vec![FailedCalls::new(FailedCallKind::Protocol, self.calls, what)])
            }
            CheckedReply::ServerMessage => return Ok(()),
            CheckedReply::Response { first, right, failures } => (first, right, failures),
        };
        let from = match first {
            Some(first) => self.settle(first),
            // An error without an id belongs to the only pending call. A success needs an id.
            None if right == 0 => self.settle_only(),
            None => return self.stray(first, now, stats),
        };
        match from {
            None if first.is_none() && !failures.is_empty() => Err(failures.swap_remove(0)),
            None => self.stray(first, now, stats),
            Some(from) => {
                if right > 0 {
                    stats.record_reply(right, from, now);
                }
                failures.into_iter().for_each(|failed| stats.record_failure(failed, now));
                Ok(())
            }
        }
    }

    /// Records a reply that matches no pending message.
    fn stray(
        &mut self,
        first: Option<u64>,
        now: u64,
        stats: &mut RoundStats,
    ) -> Result<(), FailedCalls> {
        let what = match first {
            Some(id) => format!("no pending call has the id {id}"),
            None => "a result without the id of a call".to_owned(),
        };
        let failed = FailedCalls::new(FailedCallKind::WrongId, self.calls, what);
        if !self.is_ordered {
            return Err(failed);
        }
        self.settle_only();
        stats.record_failure(failed, now);
        Ok(())
    }

    /// Removes the message with this first id, if a reply to it is valid now.
    fn settle(&mut self, first: u64) -> Option<u64> {
        let before = first.checked_sub(1)?;
        let message = before.checked_div(self.calls).filter(|n| n * self.calls == before)?;
        let at = usize::try_from(message.checked_sub(self.gone)?).ok()?;
        if self.is_ordered && at > 0 {
            return None;
        }
        let sent = self.sent.get_mut(at).filter(|sent| **sent != ANSWERED)?;
        let from = std::mem::replace(sent, ANSWERED);
        self.waiting -= 1;
        self.replies += 1;
        while self.sent.front() == Some(&ANSWERED) {
            self.sent.pop_front();
            self.gone += 1;
        }
        Some(from)
    }

    /// Removes the message that a reply without an id belongs to: the next one, or the only one.
    fn settle_only(&mut self) -> Option<u64> {
        if !self.is_ordered && self.waiting != 1 {
            return None;
        }
        self.settle(self.gone * self.calls + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::stats::Window;
    use super::*;

    fn pending(is_ordered: bool, messages: u64) -> (PendingMessages, RoundStats) {
        let mut pending = PendingMessages::new(ReplyChecker::new(1, false, None), 1, is_ordered);
        (0..messages).for_each(|sent| pending.push(sent));
        (pending, RoundStats::new(Window { start: 0, end: None }))
    }

    fn reply(id: &str) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","result":1,"id":{id}}}"#).into_bytes()
    }

    fn kinds(stats: &RoundStats) -> Vec<(FailedCallKind, u64)> {
        stats.failures.iter().map(|(kind, count, _)| (kind, count)).collect()
    }

    #[test]
    fn replies_arrive_in_any_order_and_once() {
        let (mut pending, mut stats) = pending(false, 4);
        for id in ["3", "1", "2"] {
            pending.reply(&reply(id), 10, &mut stats).unwrap();
        }
        assert_eq!((stats.calls, pending.waiting(), pending.sent.len()), (3, 1, 1));
        for stray in ["3", "1", "5", "0", "null", "\"4\""] {
            let failed = pending.reply(&reply(stray), 10, &mut stats).unwrap_err();
            assert_eq!((failed.kind, stats.calls), (FailedCallKind::WrongId, 3), "{stray}");
        }
        assert_eq!((pending.give_up(), pending.waiting()), (1, 0));
    }

    #[test]
    fn over_http_replies_match_by_order() {
        let (mut pending, mut stats) = pending(true, 4);
        for (text, calls) in [(reply("1"), 1), (reply("3"), 1), (reply("3"), 2), (b"x".into(), 2)] {
            pending.reply(&text, 10, &mut stats).unwrap();
            assert_eq!(stats.calls, calls);
        }
        assert_eq!(kinds(&stats), [(FailedCallKind::WrongId, 1), (FailedCallKind::Protocol, 1)]);
        assert_eq!(pending.waiting(), 0);
    }

    #[test]
    fn an_error_without_an_id_belongs_to_the_only_call() {
        let error = br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"},"id":null}"#;
        let (mut one, mut stats) = pending(false, 1);
        one.reply(error, 10, &mut stats).unwrap();
        assert_eq!((one.waiting(), kinds(&stats)), (0, vec![(FailedCallKind::Error(-32700), 1)]));
        let (mut two, mut stats) = pending(false, 2);
        assert_eq!(
            two.reply(error, 10, &mut stats).unwrap_err().kind,
            FailedCallKind::Error(-32700)
        );
    }

    #[test]
    fn a_notification_from_the_server_is_not_a_reply() {
        let aside = br#"{"jsonrpc":"2.0","method":"log"}"#;
        let (mut stream, mut stats) = pending(false, 1);
        stream.reply(aside, 10, &mut stats).unwrap();
        assert_eq!((stream.waiting(), stats.failures.total()), (1, 0));
        let (mut http, mut stats) = pending(true, 1);
        http.reply(aside, 10, &mut stats).unwrap();
        assert_eq!((http.waiting(), kinds(&stats)), (0, vec![(FailedCallKind::Protocol, 1)]));
    }
}
