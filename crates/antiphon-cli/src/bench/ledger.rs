//! Who waits for an answer, since when, and what the answers come to.
//!
//! Invariant: a message leaves the ledger once, by its answer or by a fault. What answers nothing
//! that waits is never counted as a success.

use std::collections::VecDeque;

use super::check::{Checker, Verdict};
use super::tally::{Fault, Kind, Tally};

/// How far the youngest message may be ahead of the oldest without an answer.
const MAX_SPAN: usize = 1 << 20;

/// In place of a time: the answer is there.
const ANSWERED: u64 = u64::MAX;

/// The messages of one connection.
pub(super) struct Ledger {
    checker: Checker,
    /// Calls in a message.
    calls: u64,
    /// Whether answers come in the order of the calls, and name them by it.
    is_ordered: bool,
    /// When the latency of each message counts from, beginning with the oldest that waits.
    sent: VecDeque<u64>,
    /// How many came before that one.
    gone: u64,
    waiting: usize,
    /// How many answers there were.
    pub(super) answers: u64,
}

impl Ledger {
    pub(super) fn new(checker: Checker, calls: u64, is_ordered: bool) -> Self {
        let (sent, gone, waiting, answers) = (VecDeque::new(), 0, 0, 0);
        Self { checker, calls, is_ordered, sent, gone, waiting, answers }
    }

    /// Messages that wait for an answer.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < MAX_SPAN
    }

    /// Adds a message; its latency counts from then.
    pub(super) fn push(&mut self, from: u64) {
        self.sent.push_back(from);
        self.waiting += 1;
    }

    /// Counts a reply. A fault that no message can be blamed for ends the connection.
    pub(super) fn reply(&mut self, text: &[u8], now: u64, tally: &mut Tally) -> Result<(), Fault> {
        let Some(first) = self.checker.same(text) else { return self.judge(text, now, tally) };
        let Some(from) = self.settle(first) else { return self.stray(Some(first), now, tally) };
        tally.answered(self.calls, from, now);
        Ok(())
    }

    /// Counts an answer that holds no reply.
    pub(super) fn refusal(&mut self, fault: Fault, now: u64, tally: &mut Tally) {
        self.settle_only();
        tally.fault(Fault { calls: self.calls, ..fault }, now);
    }

    /// Forgets all that wait; gives how many calls that are.
    pub(super) fn give_up(&mut self) -> u64 {
        self.sent.clear();
        std::mem::take(&mut self.waiting) as u64 * self.calls
    }

    fn judge(&mut self, text: &[u8], now: u64, tally: &mut Tally) -> Result<(), Fault> {
        let (first, right, mut faults) = match self.checker.judge(text) {
            Verdict::Aside if self.is_ordered => {
                let what = "a call of the server's own in place of an answer";
                (None, 0, vec![Fault::new(Kind::Protocol, self.calls, what)])
            }
            Verdict::Aside => return Ok(()),
            Verdict::Answer { first, right, faults } => (first, right, faults),
        };
        let from = match first {
            Some(first) => self.settle(first),
            // What names no call is about the only one there is, but a success must name it.
            None if right == 0 => self.settle_only(),
            None => return self.stray(first, now, tally),
        };
        match from {
            None if first.is_none() && !faults.is_empty() => Err(faults.swap_remove(0)),
            None => self.stray(first, now, tally),
            Some(from) => {
                if right > 0 {
                    tally.answered(right, from, now);
                }
                faults.into_iter().for_each(|fault| tally.fault(fault, now));
                Ok(())
            }
        }
    }

    /// An answer to something that does not wait for one.
    fn stray(&mut self, first: Option<u64>, now: u64, tally: &mut Tally) -> Result<(), Fault> {
        let what = match first {
            Some(id) => format!("nothing waits for an answer to id {id}, or not any more"),
            None => "an answer without an id that was sent".to_owned(),
        };
        let fault = Fault::new(Kind::WrongId, self.calls, what);
        if !self.is_ordered {
            return Err(fault);
        }
        self.settle_only();
        tally.fault(fault, now);
        Ok(())
    }

    /// Strikes out the message with this first id, if it may be answered now.
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
        self.answers += 1;
        while self.sent.front() == Some(&ANSWERED) {
            self.sent.pop_front();
            self.gone += 1;
        }
        Some(from)
    }

    /// Strikes out the message that an answer without an id is about: the next one, or the only
    /// one.
    fn settle_only(&mut self) -> Option<u64> {
        if !self.is_ordered && self.waiting != 1 {
            return None;
        }
        self.settle(self.gone * self.calls + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::Window;
    use super::*;

    fn ledger(is_ordered: bool, messages: u64) -> (Ledger, Tally) {
        let mut ledger = Ledger::new(Checker::new(1, false, None), 1, is_ordered);
        (0..messages).for_each(|sent| ledger.push(sent));
        (ledger, Tally::new(Window { start: 0, end: None }))
    }

    fn reply(id: &str) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","result":1,"id":{id}}}"#).into_bytes()
    }

    fn kinds(tally: &Tally) -> Vec<(Kind, u64)> {
        tally.faults.iter().map(|(kind, count, _)| (kind, count)).collect()
    }

    #[test]
    fn answers_come_in_any_order_and_once() {
        let (mut ledger, mut tally) = ledger(false, 4);
        for id in ["3", "1", "2"] {
            ledger.reply(&reply(id), 10, &mut tally).unwrap();
        }
        assert_eq!((tally.calls, ledger.waiting(), ledger.sent.len()), (3, 1, 1));
        for stray in ["3", "1", "5", "0", "null", "\"4\""] {
            let fault = ledger.reply(&reply(stray), 10, &mut tally).unwrap_err();
            assert_eq!((fault.kind, tally.calls), (Kind::WrongId, 3), "{stray}");
        }
        assert_eq!((ledger.give_up(), ledger.waiting()), (1, 0));
    }

    #[test]
    fn over_http_the_order_names_the_call() {
        let (mut ledger, mut tally) = ledger(true, 4);
        for (text, calls) in [(reply("1"), 1), (reply("3"), 1), (reply("3"), 2), (b"x".into(), 2)] {
            ledger.reply(&text, 10, &mut tally).unwrap();
            assert_eq!(tally.calls, calls);
        }
        assert_eq!(kinds(&tally), [(Kind::WrongId, 1), (Kind::Protocol, 1)]);
        assert_eq!(ledger.waiting(), 0);
    }

    #[test]
    fn an_error_without_an_id_is_about_the_only_call() {
        let error = br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"},"id":null}"#;
        let (mut one, mut tally) = ledger(false, 1);
        one.reply(error, 10, &mut tally).unwrap();
        assert_eq!((one.waiting(), kinds(&tally)), (0, vec![(Kind::Error(-32700), 1)]));
        let (mut two, mut tally) = ledger(false, 2);
        assert_eq!(two.reply(error, 10, &mut tally).unwrap_err().kind, Kind::Error(-32700));
    }

    #[test]
    fn what_a_peer_says_of_its_own_is_no_answer() {
        let aside = br#"{"jsonrpc":"2.0","method":"log"}"#;
        let (mut stream, mut tally) = ledger(false, 1);
        stream.reply(aside, 10, &mut tally).unwrap();
        assert_eq!((stream.waiting(), tally.faults.total()), (1, 0));
        let (mut http, mut tally) = ledger(true, 1);
        http.reply(aside, 10, &mut tally).unwrap();
        assert_eq!((http.waiting(), kinds(&tally)), (0, vec![(Kind::Protocol, 1)]));
    }
}
