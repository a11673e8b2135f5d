//! Is a reply right? The first is decoded and checked in full, and the text around its ids kept.
//! What equals that text but for ids of ours is right as well; anything else is decoded.
//!
//! Invariant: a text between ids that was once part of a valid Response is part of one with any
//! other whole number in its place, since a Number ends where its digits do.

use std::sync::Arc;

use antiphon::RawJson;
use antiphon::core::{Entry, Message, Outcome, Payload, Response, Rules, decode};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::tally::{Fault, Kind};

/// Of the right replies that differ from the last, one in so many is what the next are compared with.
const TRIED: u64 = 64;

/// What each result must be.
#[derive(Debug)]
pub(super) struct Expected {
    text: RawJson,
    value: serde_json::Value,
}

impl Expected {
    pub(super) fn new(text: RawJson) -> Result<Self, serde_json::Error> {
        Ok(Self { value: text.decode()?, text })
    }

    fn is(&self, result: &RawJson) -> bool {
        self.text == *result
            || result.decode::<serde_json::Value>().is_ok_and(|value| value == self.value)
    }
}

/// What a text turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The answer to a message.
    Answer {
        /// The first id of the message; none where the answer does not say.
        first: Option<u64>,
        /// Calls with the right result.
        right: u64,
        faults: Vec<Fault>,
    },
    /// A Notification or Request of the peer's own, which is no answer.
    Aside,
}

/// Checks the replies on one connection.
pub(super) struct Checker {
    calls: u64,
    is_batch: bool,
    expected: Option<Arc<Expected>>,
    rules: Rules,
    /// Empty until a reply was right.
    shape: Shape,
    /// Right replies that had to be decoded.
    decoded: u64,
}

/// The text of a right reply around its ids.
#[derive(Default)]
struct Shape {
    before: Vec<u8>,
    /// Between two ids of a batch, the same everywhere.
    between: Vec<u8>,
    after: Vec<u8>,
}

impl Checker {
    pub(super) fn new(calls: u64, is_batch: bool, expected: Option<Arc<Expected>>) -> Self {
        let rules = Rules {
            depth: usize::MAX,
            batch_entries: usize::MAX,
            batch_answers: usize::MAX,
            null_params: true,
        };
        Self { calls, is_batch, expected, rules, shape: Shape::default(), decoded: 0 }
    }

    /// The first id of the message that this answers, where all of it is as it was before.
    pub(super) fn same(&self, reply: &[u8]) -> Option<u64> {
        let shape = &self.shape;
        if shape.before.is_empty() {
            return None;
        }
        let (first, mut rest) = number(reply.strip_prefix(&*shape.before)?)?;
        for id in first + 1..first + self.calls {
            let (found, next) = number(rest.strip_prefix(&*shape.between)?)?;
            if found != id {
                return None;
            }
            rest = next;
        }
        (rest == shape.after).then_some(first)
    }

    /// Decodes a reply; one that is right may be what the next are compared with.
    pub(super) fn judge(&mut self, reply: &[u8]) -> Verdict {
        match decode(&Bytes::copy_from_slice(reply), &self.rules) {
            Payload::One(Ok(Message::Response(response))) if self.is_batch => {
                self.whole_batch(&response)
            }
            Payload::One(Ok(Message::Response(response))) => self.one(reply, &response),
            Payload::One(Ok(_)) => Verdict::Aside,
            Payload::Batch(entries) if self.is_batch => {
                self.batch(reply, &entries.collect::<Vec<_>>())
            }
            Payload::Batch(_) => self.nothing("an Array answers a single call"),
            Payload::One(Err(invalid)) => self.nothing(&format!("no Response: {}", invalid.error)),
        }
    }

    fn nothing(&self, what: &str) -> Verdict {
        let faults = vec![Fault::new(Kind::Protocol, self.calls, what)];
        Verdict::Answer { first: None, right: 0, faults }
    }

    fn one(&mut self, text: &[u8], response: &Response) -> Verdict {
        let first = response.id.as_u64();
        match self.outcome(&response.outcome) {
            Err(fault) => Verdict::Answer { first, right: 0, faults: vec![fault] },
            Ok(()) => {
                self.learn(text);
                Verdict::Answer { first, right: 1, faults: Vec::new() }
            }
        }
    }

    fn outcome(&self, outcome: &Outcome) -> Result<(), Fault> {
        match (outcome, &self.expected) {
            (Err(error), _) => Err(Fault::new(Kind::Error(error.code.0), 1, &*error.message)),
            (Ok(result), Some(expected)) if !expected.is(result) => {
                Err(Fault::new(Kind::WrongResult, 1, result.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// A single Response to an Array is about all of it (section 6).
    fn whole_batch(&self, response: &Response) -> Verdict {
        match &response.outcome {
            Ok(_) => self.nothing("a single result answers an Array"),
            Err(error) => {
                let fault = Fault::new(Kind::Error(error.code.0), self.calls, &*error.message);
                Verdict::Answer { first: None, right: 0, faults: vec![fault] }
            }
        }
    }

    /// Each call of the message is answered exactly once, or it is not right.
    fn batch(&mut self, text: &[u8], entries: &[Entry]) -> Verdict {
        let mut ids = entries.iter().filter_map(|entry| answer(entry)?.id.as_u64());
        let first = ids.next().filter(|id| *id > 0);
        let first = first.map(|id| id - (id - 1) % self.calls);
        let mut seen = vec![false; self.calls as usize];
        let (mut right, mut strays, mut faults) = (0, 0, Vec::new());
        for entry in entries {
            let place = answer(entry).and_then(|response| {
                let place = response.id.as_u64()?.checked_sub(first?)?;
                let seen = seen.get_mut(usize::try_from(place).ok()?)?;
                (!std::mem::replace(seen, true)).then_some(&response.outcome)
            });
            match place.map(|outcome| self.outcome(outcome)) {
                None => strays += 1,
                Some(Ok(())) => right += 1,
                Some(Err(fault)) => faults.push(fault),
            }
        }
        let missing = seen.iter().filter(|seen| !**seen).count() as u64;
        if strays > 0 {
            // One too many makes another one doubtful.
            let doubtful = if missing == 0 { right.min(1) } else { 0 };
            right -= doubtful;
            let what = "an entry of a batch answers nothing, or what another one does";
            faults.push(Fault::new(Kind::WrongId, (missing + doubtful).max(1), what));
        } else if missing > 0 {
            faults.push(Fault::new(Kind::Protocol, missing, "a call of a batch is not answered"));
        } else if faults.is_empty() {
            self.learn(text);
        }
        Verdict::Answer { first, right, faults }
    }

    /// Keeps the text around the ids, where these count up and all gaps are alike. Where replies
    /// differ all the time there is nothing to learn: only some are tried.
    fn learn(&mut self, text: &[u8]) {
        self.decoded += 1;
        if self.decoded % TRIED != 1 {
            return;
        }
        self.shape.before.clear();
        if let Some(places) = places(text, self.is_batch)
            && let (Some(first), Some(last)) = (places.first(), places.last())
        {
            let gap = |pair: &[(usize, usize)]| &text[pair[0].1..pair[1].0];
            let mut gaps = places.windows(2).map(gap);
            let between = gaps.next().unwrap_or_default();
            if gaps.all(|gap| gap == between) {
                replace(&mut self.shape.before, &text[..first.0]);
                replace(&mut self.shape.between, between);
                replace(&mut self.shape.after, &text[last.1..]);
            }
        }
    }
}

fn answer(entry: &Entry) -> Option<&Response> {
    match entry {
        Ok(Message::Response(response)) => Some(response),
        _ => None,
    }
}

fn replace(kept: &mut Vec<u8>, text: &[u8]) {
    kept.clear();
    kept.extend_from_slice(text);
}

/// A Response as far as it matters where its id stands. That it is one was checked before.
#[derive(Deserialize)]
struct WithId<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
}

/// Where each id begins and ends; none where they do not count up, or are not written as we would.
fn places(text: &[u8], is_batch: bool) -> Option<Vec<(usize, usize)>> {
    let responses: Vec<WithId<'_>> = match is_batch {
        true => serde_json::from_slice(text).ok()?,
        false => vec![serde_json::from_slice(text).ok()?],
    };
    let ids = responses.iter().map(|response| response.id.get().as_bytes());
    let (first, _) = number(ids.clone().next()?)?;
    let places = ids.zip(first..).map(|(id, expected)| {
        // It borrows from the text.
        let at = (id.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        let end = at + id.len();
        let is_plain = number(id)? == (expected, &[]) && text.get(at..end)? == id;
        is_plain.then_some((at, end))
    });
    places.collect()
}

/// The whole number at the front of a text, and what follows it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    let mut at = 0;
    while let Some(digit @ b'0'..=b'9') = text.get(at) {
        if value == 0 && at > 0 || at == 18 {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
        at += 1;
    }
    (value > 0).then(|| (value, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checker(batch: Option<u64>, expected: Option<&'static str>) -> Checker {
        let expected = expected.map(|text| RawJson::parse(text).unwrap());
        let expected = expected.map(|text| Arc::new(Expected::new(text).unwrap()));
        Checker::new(batch.unwrap_or(1), batch.is_some(), expected)
    }

    fn reply(id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","result":19,"id":{id}}}"#)
    }

    fn array(ids: &[u64]) -> String {
        format!("[{}]", ids.iter().map(|id| reply(*id)).collect::<Vec<_>>().join(","))
    }

    #[track_caller]
    fn counts(verdict: &Verdict, first: Option<u64>, right: u64, kinds: &[(Kind, u64)]) {
        let Verdict::Answer { first: found, right: counted, faults } = verdict else {
            panic!("no answer: {verdict:?}");
        };
        let faults: Vec<_> = faults.iter().map(|fault| (fault.kind, fault.calls)).collect();
        assert_eq!((*found, *counted, &*faults), (first, right, kinds));
    }

    #[test]
    fn what_equals_the_first_is_right_but_for_the_id() {
        let mut checker = checker(None, Some("19"));
        assert_eq!(checker.same(reply(1).as_bytes()), None);
        counts(&checker.judge(reply(1).as_bytes()), Some(1), 1, &[]);
        for id in [1, 2, 10, 123_456_789] {
            assert_eq!(checker.same(reply(id).as_bytes()), Some(id));
        }
        for other in [
            r#"{"jsonrpc":"2.0","result":18,"id":2}"#,
            r#"{"jsonrpc":"2.0","result":19,"id":02}"#,
            r#"{"jsonrpc":"2.0","result":19,"id":0}"#,
            r#"{"jsonrpc":"2.0","result":19,"id":}"#,
            r#"{"jsonrpc":"2.0","result":19,"id":2.5}"#,
            r#"{"jsonrpc":"2.0","result":19,"id":"2"}"#,
            r#"{"jsonrpc":"2.0","result":19,"id":-2}"#,
            r#"{"jsonrpc":"2.0","result":19,"id":99999999999999999999}"#,
            r#"{"jsonrpc":"2.0","result":19,"id":2} "#,
            r#"{"jsonrpc":"2.0","result":19,"id":2"#,
            "",
        ] {
            assert_eq!(checker.same(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn an_id_may_stand_anywhere_and_in_a_result_too() {
        let mut checker = checker(None, None);
        let text = |id| format!(r#"{{ "id" : {id}, "result": {{"id":7}}, "jsonrpc": "2.0" }}"#);
        counts(&checker.judge(text(7).as_bytes()), Some(7), 1, &[]);
        assert_eq!(checker.same(text(8).as_bytes()), Some(8));
        assert_eq!(checker.same(text(8).replace(":7", ":8").as_bytes()), None);
    }

    #[test]
    fn a_float_of_an_id_is_right_but_no_model() {
        let mut checker = checker(None, None);
        let text = r#"{"jsonrpc":"2.0","result":1,"id":7.0}"#;
        counts(&checker.judge(text.as_bytes()), Some(7), 1, &[]);
        assert_eq!(checker.same(text.as_bytes()), None);
        assert_eq!(checker.same(text.replace("7.0", "8").as_bytes()), None);
    }

    #[test]
    fn a_reply_that_changes_for_good_is_learnt_anew() {
        let mut checker = checker(None, None);
        let other = |id| reply(id).replace(":19,", ":[20],");
        counts(&checker.judge(reply(1).as_bytes()), Some(1), 1, &[]);
        let decoded = (2..200).filter(|id| {
            checker.same(other(*id).as_bytes()).is_none() && {
                counts(&checker.judge(other(*id).as_bytes()), Some(*id), 1, &[]);
                true
            }
        });
        assert_eq!(decoded.count() as u64, TRIED);
    }

    #[test]
    fn faults_have_kinds() {
        let mut checker = checker(None, Some(r#"{"a":1,"b":2}"#));
        let same = r#"{"jsonrpc":"2.0","result":{"b":2, "a":1},"id":3}"#;
        counts(&checker.judge(same.as_bytes()), Some(3), 1, &[]);
        let wrong = same.replace('1', "3");
        counts(&checker.judge(wrong.as_bytes()), Some(3), 0, &[(Kind::WrongResult, 1)]);
        let error = r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"m"},"id":4}"#;
        counts(&checker.judge(error.as_bytes()), Some(4), 0, &[(Kind::Error(-32601), 1)]);
        for garbage in ["", "<html>", "[]", "[1]", r#"{"jsonrpc":"2.0","id":1}"#, r#"{"result":1}"#]
        {
            counts(&checker.judge(garbage.as_bytes()), None, 0, &[(Kind::Protocol, 1)]);
        }
        let aside = r#"{"jsonrpc":"2.0","method":"log","params":[]}"#;
        assert_eq!(checker.judge(aside.as_bytes()), Verdict::Aside);
    }

    #[test]
    fn a_batch_is_right_when_each_id_is_there_once() {
        let mut checker = checker(Some(3), None);
        counts(&checker.judge(array(&[4, 5, 6]).as_bytes()), Some(4), 3, &[]);
        assert_eq!(checker.same(array(&[7, 8, 9]).as_bytes()), Some(7));
        assert_eq!(checker.same(array(&[97, 98, 99]).as_bytes()), Some(97));
        assert_eq!(checker.same(array(&[100, 101, 102]).as_bytes()), Some(100));
        for other in [&[7, 8][..], &[7, 8, 9, 10], &[7, 9, 8], &[7, 7, 8], &[7, 8, 10]] {
            assert_eq!(checker.same(array(other).as_bytes()), None, "{other:?}");
        }
        for (ids, first, right, faults) in [
            (&[9, 7, 8][..], 7, 3, &[][..]),
            (&[7, 8], 7, 2, &[(Kind::Protocol, 1)]),
            (&[7, 8, 8], 7, 2, &[(Kind::WrongId, 1)]),
            (&[7, 8, 9, 9], 7, 2, &[(Kind::WrongId, 1)]),
            (&[7, 8, 90], 7, 2, &[(Kind::WrongId, 1)]),
        ] {
            counts(&checker.judge(array(ids).as_bytes()), Some(first), right, faults);
        }
    }

    #[test]
    fn one_error_may_answer_a_whole_batch() {
        let mut checker = checker(Some(3), None);
        let error = r#"{"jsonrpc":"2.0","error":{"code":-32010,"message":"m"},"id":null}"#;
        counts(&checker.judge(error.as_bytes()), None, 0, &[(Kind::Error(-32010), 3)]);
        counts(&checker.judge(reply(1).as_bytes()), None, 0, &[(Kind::Protocol, 3)]);
    }
}
