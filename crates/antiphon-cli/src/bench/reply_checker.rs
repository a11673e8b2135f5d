//! Checks of replies. The first reply is decoded in full, and the text around its ids becomes a
//! template. A reply that equals the template with other ids is valid too. Any other reply is decoded.
//!
//! Invariant: a valid response stays valid if its id is replaced by another whole number, since a
//! Number ends where its digits end.

use std::sync::Arc;

use antiphon::RawJson;
use antiphon::core::{Entry, Message, Outcome, Payload, Response, Rules, decode};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::stats::{FailedCallKind, FailedCalls};

/// One in this many decoded replies becomes the new template.
const LEARN_EVERY: u64 = 64;

/// The expected result of each call.
#[derive(Debug)]
pub(super) struct ExpectedResult {
    text: RawJson,
    value: serde_json::Value,
}

impl ExpectedResult {
    pub(super) fn new(text: RawJson) -> Result<Self, serde_json::Error> {
        Ok(Self { value: text.decode()?, text })
    }

    fn is(&self, result: &RawJson) -> bool {
        self.text == *result
            || result.decode::<serde_json::Value>().is_ok_and(|value| value == self.value)
    }
}

/// The outcome of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CheckedReply {
    /// The reply to a message.
    Response {
        /// The first id of the message; `None` if the reply has no id.
        first: Option<u64>,
        /// Calls with a valid result.
        right: u64,
        failures: Vec<FailedCalls>,
    },
    /// A notification or request from the server, which is not a reply.
    ServerMessage,
}

/// Checks the replies on one connection.
pub(super) struct ReplyChecker {
    calls: u64,
    is_batch: bool,
    expected: Option<Arc<ExpectedResult>>,
    rules: Rules,
    /// Empty before the first valid reply.
    template: ReplyTemplate,
    /// The number of valid replies that had to be decoded.
    decoded: u64,
}

/// The text of a valid reply around its ids.
#[derive(Default)]
struct ReplyTemplate {
    before: Vec<u8>,
    /// The text between two ids of a batch.
    between: Vec<u8>,
    after: Vec<u8>,
}

impl ReplyChecker {
    pub(super) fn new(calls: u64, is_batch: bool, expected: Option<Arc<ExpectedResult>>) -> Self {
        let rules = Rules {
            depth: usize::MAX,
            batch_entries: usize::MAX,
            batch_answers: usize::MAX,
            null_params: true,
            ..Rules::default()
        };
        Self { calls, is_batch, expected, rules, template: ReplyTemplate::default(), decoded: 0 }
    }

    /// Returns the first id of the message if the reply equals the template.
    pub(super) fn matches_template(&self, reply: &[u8]) -> Option<u64> {
        let template = &self.template;
        if template.before.is_empty() {
            return None;
        }
        let (first, mut rest) = number(reply.strip_prefix(&*template.before)?)?;
        for id in first + 1..first + self.calls {
            let (found, next) = number(rest.strip_prefix(&*template.between)?)?;
            if found != id {
                return None;
            }
            rest = next;
        }
        (rest == template.after).then_some(first)
    }

    /// Decodes a reply. A valid one may become the template.
    pub(super) fn check(&mut self, reply: &[u8]) -> CheckedReply {
        match decode(&Bytes::copy_from_slice(reply), &self.rules) {
            Payload::One(Ok(Message::Response(response))) if self.is_batch => {
                self.whole_batch(&response)
            }
            Payload::One(Ok(Message::Response(response))) => self.one(reply, &response),
            Payload::One(Ok(_)) => CheckedReply::ServerMessage,
            Payload::Batch(entries) if self.is_batch => {
                self.batch(reply, &entries.collect::<Vec<_>>())
            }
            Payload::Batch(_) => self.invalid("an Array in reply to a single call"),
            Payload::One(Err(invalid)) => {
                self.invalid(&format!("not a response: {}", invalid.error))
            }
        }
    }

    fn invalid(&self, what: &str) -> CheckedReply {
        let failures = vec![FailedCalls::new(FailedCallKind::Protocol, self.calls, what)];
        CheckedReply::Response { first: None, right: 0, failures }
    }

    fn one(&mut self, text: &[u8], response: &Response) -> CheckedReply {
        let first = response.id.as_u64();
        match self.outcome(&response.outcome) {
            Err(failed) => CheckedReply::Response { first, right: 0, failures: vec![failed] },
            Ok(()) => {
                self.learn(text);
                CheckedReply::Response { first, right: 1, failures: Vec::new() }
            }
        }
    }

    fn outcome(&self, outcome: &Outcome) -> Result<(), FailedCalls> {
        match (outcome, &self.expected) {
            (Err(error), _) => {
                Err(FailedCalls::new(FailedCallKind::Error(error.code.0), 1, &*error.message))
            }
            (Ok(result), Some(expected)) if !expected.is(result) => {
                Err(FailedCalls::new(FailedCallKind::WrongResult, 1, result.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// A single response to a batch applies to the whole batch (section 6).
    fn whole_batch(&self, response: &Response) -> CheckedReply {
        match &response.outcome {
            Ok(_) => self.invalid("a single result in reply to a batch"),
            Err(error) => {
                let failed = FailedCalls::new(
                    FailedCallKind::Error(error.code.0),
                    self.calls,
                    &*error.message,
                );
                CheckedReply::Response { first: None, right: 0, failures: vec![failed] }
            }
        }
    }

    /// Checks a batch. Each call must have exactly one response.
    fn batch(&mut self, text: &[u8], entries: &[Entry]) -> CheckedReply {
        let mut ids = entries.iter().filter_map(|entry| as_response(entry)?.id.as_u64());
        let first = ids.next().filter(|id| *id > 0);
        let first = first.map(|id| id - (id - 1) % self.calls);
        let mut seen = vec![false; self.calls as usize];
        let (mut right, mut strays, mut failures) = (0, 0, Vec::new());
        for entry in entries {
            let place = as_response(entry).and_then(|response| {
                let place = response.id.as_u64()?.checked_sub(first?)?;
                let seen = seen.get_mut(usize::try_from(place).ok()?)?;
                (!std::mem::replace(seen, true)).then_some(&response.outcome)
            });
            match place.map(|outcome| self.outcome(outcome)) {
                None => strays += 1,
                Some(Ok(())) => right += 1,
                Some(Err(failed)) => failures.push(failed),
            }
        }
        let missing = seen.iter().filter(|seen| !**seen).count() as u64;
        if strays > 0 {
            // A surplus response makes one of the others doubtful.
            let doubtful = if missing == 0 { right.min(1) } else { 0 };
            right -= doubtful;
            let what = "an entry of a batch matches no call, or one that has a response already";
            failures.push(FailedCalls::new(
                FailedCallKind::WrongId,
                (missing + doubtful).max(1),
                what,
            ));
        } else if missing > 0 {
            failures.push(FailedCalls::new(
                FailedCallKind::Protocol,
                missing,
                "a call of a batch has no response",
            ));
        } else if failures.is_empty() {
            self.learn(text);
        }
        CheckedReply::Response { first, right, failures }
    }

    /// Makes a template of a reply whose ids count up with equal text between them. If replies keep
    /// changing, only one in [`LEARN_EVERY`] is tried.
    fn learn(&mut self, text: &[u8]) {
        self.decoded += 1;
        if self.decoded % LEARN_EVERY != 1 {
            return;
        }
        self.template.before.clear();
        if let Some(spans) = id_spans(text, self.is_batch)
            && let (Some(first), Some(last)) = (spans.first(), spans.last())
        {
            let gap = |pair: &[(usize, usize)]| &text[pair[0].1..pair[1].0];
            let mut gaps = spans.windows(2).map(gap);
            let between = gaps.next().unwrap_or_default();
            if gaps.all(|gap| gap == between) {
                replace(&mut self.template.before, &text[..first.0]);
                replace(&mut self.template.between, between);
                replace(&mut self.template.after, &text[last.1..]);
            }
        }
    }
}

fn as_response(entry: &Entry) -> Option<&Response> {
    match entry {
        Ok(Message::Response(response)) => Some(response),
        _ => None,
    }
}

fn replace(kept: &mut Vec<u8>, text: &[u8]) {
    kept.clear();
    kept.extend_from_slice(text);
}

/// The id of a response that is already known to be valid.
#[derive(Deserialize)]
struct WithId<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
}

/// Returns the byte range of each id, or `None` unless the ids are plain integers that count up.
fn id_spans(text: &[u8], is_batch: bool) -> Option<Vec<(usize, usize)>> {
    let responses: Vec<WithId<'_>> = match is_batch {
        true => serde_json::from_slice(text).ok()?,
        false => vec![serde_json::from_slice(text).ok()?],
    };
    let ids = responses.iter().map(|response| response.id.get().as_bytes());
    let (first, _) = number(ids.clone().next()?)?;
    let spans = ids.zip(first..).map(|(id, expected)| {
        // The id borrows from `text`, so the pointers can be compared.
        let at = (id.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        let end = at + id.len();
        let is_plain = number(id)? == (expected, &[]) && text.get(at..end)? == id;
        is_plain.then_some((at, end))
    });
    spans.collect()
}

/// Splits a text after the integer at its start.
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

    fn checker(batch: Option<u64>, expected: Option<&'static str>) -> ReplyChecker {
        let expected = expected.map(|text| RawJson::parse(text).unwrap());
        let expected = expected.map(|text| Arc::new(ExpectedResult::new(text).unwrap()));
        ReplyChecker::new(batch.unwrap_or(1), batch.is_some(), expected)
    }

    fn reply(id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","result":19,"id":{id}}}"#)
    }

    fn array(ids: &[u64]) -> String {
        format!("[{}]", ids.iter().map(|id| reply(*id)).collect::<Vec<_>>().join(","))
    }

    #[track_caller]
    fn counts(
        verdict: &CheckedReply,
        first: Option<u64>,
        right: u64,
        kinds: &[(FailedCallKind, u64)],
    ) {
        let CheckedReply::Response { first: found, right: counted, failures } = verdict else {
            panic!("not a response: {verdict:?}");
        };
        let failures: Vec<_> = failures.iter().map(|failed| (failed.kind, failed.calls)).collect();
        assert_eq!((*found, *counted, &*failures), (first, right, kinds));
    }

    #[test]
    fn a_reply_like_the_first_matches_with_any_id() {
        let mut checker = checker(None, Some("19"));
        assert_eq!(checker.matches_template(reply(1).as_bytes()), None);
        counts(&checker.check(reply(1).as_bytes()), Some(1), 1, &[]);
        for id in [1, 2, 10, 123_456_789] {
            assert_eq!(checker.matches_template(reply(id).as_bytes()), Some(id));
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
            assert_eq!(checker.matches_template(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_id_may_be_anywhere_and_in_the_result_too() {
        let mut checker = checker(None, None);
        let text = |id| format!(r#"{{ "id" : {id}, "result": {{"id":7}}, "jsonrpc": "2.0" }}"#);
        counts(&checker.check(text(7).as_bytes()), Some(7), 1, &[]);
        assert_eq!(checker.matches_template(text(8).as_bytes()), Some(8));
        assert_eq!(checker.matches_template(text(8).replace(":7", ":8").as_bytes()), None);
    }

    #[test]
    fn an_id_written_as_a_float_is_valid_but_not_a_template() {
        let mut checker = checker(None, None);
        let text = r#"{"jsonrpc":"2.0","result":1,"id":7.0}"#;
        counts(&checker.check(text.as_bytes()), Some(7), 1, &[]);
        assert_eq!(checker.matches_template(text.as_bytes()), None);
        assert_eq!(checker.matches_template(text.replace("7.0", "8").as_bytes()), None);
    }

    #[test]
    fn a_lasting_change_of_the_reply_becomes_the_template() {
        let mut checker = checker(None, None);
        let other = |id| reply(id).replace(":19,", ":[20],");
        counts(&checker.check(reply(1).as_bytes()), Some(1), 1, &[]);
        let decoded = (2..200).filter(|id| {
            checker.matches_template(other(*id).as_bytes()).is_none() && {
                counts(&checker.check(other(*id).as_bytes()), Some(*id), 1, &[]);
                true
            }
        });
        assert_eq!(decoded.count() as u64, LEARN_EVERY);
    }

    #[test]
    fn each_invalid_reply_has_a_kind() {
        let mut checker = checker(None, Some(r#"{"a":1,"b":2}"#));
        let same = r#"{"jsonrpc":"2.0","result":{"b":2, "a":1},"id":3}"#;
        counts(&checker.check(same.as_bytes()), Some(3), 1, &[]);
        let wrong = same.replace('1', "3");
        counts(&checker.check(wrong.as_bytes()), Some(3), 0, &[(FailedCallKind::WrongResult, 1)]);
        let error = r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"m"},"id":4}"#;
        counts(&checker.check(error.as_bytes()), Some(4), 0, &[(FailedCallKind::Error(-32601), 1)]);
        for garbage in ["", "<html>", "[]", "[1]", r#"{"jsonrpc":"2.0","id":1}"#, r#"{"result":1}"#]
        {
            counts(&checker.check(garbage.as_bytes()), None, 0, &[(FailedCallKind::Protocol, 1)]);
        }
        let aside = r#"{"jsonrpc":"2.0","method":"log","params":[]}"#;
        assert_eq!(checker.check(aside.as_bytes()), CheckedReply::ServerMessage);
    }

    #[test]
    fn a_batch_is_valid_if_each_id_occurs_once() {
        let mut checker = checker(Some(3), None);
        counts(&checker.check(array(&[4, 5, 6]).as_bytes()), Some(4), 3, &[]);
        assert_eq!(checker.matches_template(array(&[7, 8, 9]).as_bytes()), Some(7));
        assert_eq!(checker.matches_template(array(&[97, 98, 99]).as_bytes()), Some(97));
        assert_eq!(checker.matches_template(array(&[100, 101, 102]).as_bytes()), Some(100));
        for other in [&[7, 8][..], &[7, 8, 9, 10], &[7, 9, 8], &[7, 7, 8], &[7, 8, 10]] {
            assert_eq!(checker.matches_template(array(other).as_bytes()), None, "{other:?}");
        }
        for (ids, first, right, failures) in [
            (&[9, 7, 8][..], 7, 3, &[][..]),
            (&[7, 8], 7, 2, &[(FailedCallKind::Protocol, 1)]),
            (&[7, 8, 8], 7, 2, &[(FailedCallKind::WrongId, 1)]),
            (&[7, 8, 9, 9], 7, 2, &[(FailedCallKind::WrongId, 1)]),
            (&[7, 8, 90], 7, 2, &[(FailedCallKind::WrongId, 1)]),
        ] {
            counts(&checker.check(array(ids).as_bytes()), Some(first), right, failures);
        }
    }

    #[test]
    fn one_error_may_be_the_reply_to_a_whole_batch() {
        let mut checker = checker(Some(3), None);
        let error = r#"{"jsonrpc":"2.0","error":{"code":-32010,"message":"m"},"id":null}"#;
        counts(&checker.check(error.as_bytes()), None, 0, &[(FailedCallKind::Error(-32010), 3)]);
        counts(&checker.check(reply(1).as_bytes()), None, 0, &[(FailedCallKind::Protocol, 3)]);
    }
}
