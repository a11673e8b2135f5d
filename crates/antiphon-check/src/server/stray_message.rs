//! Finds the case that an unexpected message belongs to.
//!
//! Cases share a connection, so a late reply to one case arrives while a later case runs. The id of the reply limits
//! the cases that it can belong to. A message never counts against a case that it cannot belong to.

use super::methods::ServerMethods;
use crate::result::{CaseResult, CaseStatus, FailureKind, Finding, shortened};
use crate::transcript::json::{Json, JsonValue};
use crate::transcript::{CaseStep, Order, Pattern, TranscriptCase};

/// Reports whether the message can be a reply to what the case sends.
pub(super) fn can_answer(message: &[u8], case: &TranscriptCase) -> bool {
    match id_of(message) {
        MessageId::Exact(id) => case.sent().any(|text| has_id(&text.written, &id)),
        MessageId::Batch(ids) => case.sent().any(|text| {
            let is_batch = text.written.trim_start().starts_with('[');
            is_batch && (ids.is_empty() || ids.iter().any(|id| has_id(&text.written, id)))
        }),
        MessageId::Null => case.steps.iter().any(allows_null_id),
        MessageId::Unknown => true,
    }
}

/// Adds a finding to the earlier case that the message belongs to. `users` are the cases that used the connection.
///
/// If the message is the reply that a case without a reply expected, that case passes. Any other message is a finding
/// of the last case that it can be a reply to.
pub(super) fn settle(
    message: &[u8],
    users: &[usize],
    cases: &[TranscriptCase],
    results: &mut [CaseResult],
    methods: &ServerMethods,
) {
    if clear(message, users, cases, results, methods) {
        return;
    }
    let owner = users.iter().rev().find(|user| can_answer(message, &cases[**user]));
    let what = format!("an unexpected message: {}", shortened(message));
    let finding = Finding::new(FailureKind::Extra, what);
    charge_passed(owner.and_then(|user| results.get_mut(*user)), &finding);
}

/// Lets an earlier case without a reply pass, if the message is the reply that it expected.
pub(super) fn clear(
    message: &[u8],
    users: &[usize],
    cases: &[TranscriptCase],
    results: &mut [CaseResult],
    methods: &ServerMethods,
) -> bool {
    let is_expected = |case: &TranscriptCase| {
        let mut bindings = methods.bindings();
        case.steps
            .iter()
            .flat_map(patterns)
            .any(|pattern| pattern.matches(message, Order::Free, &mut bindings).is_ok())
    };
    let is_late =
        |user: &&usize| results.get(**user).is_some_and(is_silent) && is_expected(&cases[**user]);
    let Some(result) = users.iter().find(is_late).and_then(|user| results.get_mut(*user)) else {
        return false;
    };
    result.status = CaseStatus::Passed;
    (result.fault, result.reason) = (None, None);
    result.dialogue.clear();
    true
}

/// Adds a finding to an earlier case, unless it already has one.
pub(super) fn charge_passed(earlier: Option<&mut CaseResult>, finding: &Finding) {
    if let Some(earlier) = earlier.filter(|earlier| earlier.status == CaseStatus::Passed) {
        charge(earlier, &finding.clone().because("after the reply to the next call:"));
    }
}

/// Replaces the result of a passed case by the finding.
pub(super) fn charge(result: &mut CaseResult, finding: &Finding) {
    result.status = CaseStatus::of(result.level, finding.fault);
    result.fault = Some(finding.fault);
    result.reason = Some(finding.reason.clone());
}

fn is_silent(result: &CaseResult) -> bool {
    result.fault == Some(FailureKind::Silent)
}

/// The id of a message that arrived.
enum MessageId {
    /// An id that a client sent.
    Exact(Json),
    /// The id of an error that belongs to no readable id.
    Null,
    /// Several replies in one Array, and their ids without null.
    Batch(Vec<Json>),
    /// No Response: a message that any case can cause.
    Unknown,
}

fn id_of(message: &[u8]) -> MessageId {
    let Some(json) = std::str::from_utf8(message).ok().and_then(|text| Json::parse(text).ok())
    else {
        return MessageId::Unknown;
    };
    if let JsonValue::Array(entries) = &json.value {
        let ids = entries.iter().filter_map(|entry| entry.member("id")).filter(|id| !is_null(id));
        return MessageId::Batch(ids.cloned().collect());
    }
    match json.member("id") {
        _ if json.member("method").is_some() => MessageId::Unknown,
        Some(id) if !is_null(id) => MessageId::Exact(id.clone()),
        Some(_) => MessageId::Null,
        None if json.member("error").is_some() => MessageId::Null,
        None => MessageId::Unknown,
    }
}

fn is_null(id: &Json) -> bool {
    matches!(id.value, JsonValue::Null)
}

/// Reports whether a sent message, or an entry of a sent batch, has this id.
fn has_id(text: &str, id: &Json) -> bool {
    match Json::parse(text) {
        Ok(json) => match &json.value {
            JsonValue::Array(entries) => entries.iter().any(|entry| entry.member("id") == Some(id)),
            _ => json.member("id") == Some(id),
        },
        Err(_) => ids_in(text).any(|found| found == *id),
    }
}

/// Returns the values of the members `id` in a text that is not JSON.
fn ids_in(text: &str) -> impl Iterator<Item = Json> {
    text.match_indices("\"id\"").filter_map(|(at, name)| {
        let value = text[at + name.len()..].trim_start().strip_prefix(':')?;
        let ends = value.match_indices([',', '}', ']']).map(|(end, _)| end).take(MAX_ID_ENDS);
        ends.chain([value.len()]).find_map(|end| Json::parse(&value[..end]).ok())
    })
}

/// The number of characters that can end an id, in the search for its end. An id may contain them.
const MAX_ID_ENDS: usize = 8;

/// Reports whether a reply with a null id can follow the step: the case expects one, or no reply at all.
fn allows_null_id(step: &CaseStep) -> bool {
    match step {
        CaseStep::Nothing | CaseStep::Closed => true,
        CaseStep::Expect(expected) if expected.or.silence => true,
        step => patterns(step).any(Pattern::has_null_id),
    }
}

fn patterns(step: &CaseStep) -> impl Iterator<Item = &Pattern> {
    let patterns: &[Pattern] = match step {
        CaseStep::Expect(expected) => &expected.any_of,
        CaseStep::Unordered(patterns) => patterns,
        _ => &[],
    };
    patterns.iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::parse;

    fn case(steps: &str) -> TranscriptCase {
        parse("g", &format!("@ section 4\n== a: b\n{steps}\n")).unwrap().remove(0)
    }

    #[test]
    fn the_id_tells_which_case_a_message_belongs_to() {
        let call = case("--> {\"method\":\"a\",\"id\":7}\n<-- {\"result\":1,\"id\":7}");
        let quiet = case("--> {\"method\":\"a\"}\n<-!");
        let broken = case("--> {\n<-- {\"error\":{\"code\":-32700},\"id\":null}");
        let batch = case("--> [1]\n<-- [{\"error\":{\"code\":-32600},\"id\":null}]");
        for (message, owners) in [
            (r#"{"error":{"code":-32700,"message":""},"id":null}"#, [false, true, true, true]),
            (r#"{"error":{"code":-32700,"message":""}}"#, [false, true, true, true]),
            ("no JSON", [true, true, true, true]),
            (r#"{"result":1,"id":7}"#, [true, false, false, false]),
            (r#"{"result":1,"id":8}"#, [false, false, false, false]),
            (r#"[{"error":{"code":-32600},"id":null}]"#, [false, false, false, true]),
            (r#"[{"result":1,"id":7}]"#, [false, false, false, false]),
        ] {
            let found =
                [&call, &quiet, &broken, &batch].map(|case| can_answer(message.as_bytes(), case));
            assert_eq!(found, owners, "{message}");
        }
    }

    #[test]
    fn ids_are_compared_as_values() {
        for (sent, message, is_reply) in [
            (r#"{"method":"a1","params":[1],"id":11}"#, r#"{"result":0,"id":1}"#, false),
            (r#"{"method":"a","params":{"id":1},"id":2}"#, r#"{"result":0,"id":1}"#, false),
            (r#"{"method":"a","id":"1"}"#, r#"{"result":0,"id":1}"#, false),
            (r#"{"method":"a","id":"\u0061"}"#, r#"{"result":0,"id":"a"}"#, true),
            (r#"[{"method":"a","id":7},{"method":"a","id":8}]"#, r#"{"result":0,"id":8}"#, true),
            (r#"[{"method":"a","id":7}]"#, r#"[{"result":0,"id":7}]"#, true),
            // Not JSON: the members `id` count.
            (r#"{"method":"a,"params":[1],"id":12}"#, r#"{"result":0,"id":1}"#, false),
            (r#"{"method":"a,"params":[1],"id": "a,b" }"#, r#"{"result":0,"id":"a,b"}"#, true),
            (r#"{"id":1,"method":"a","id":2}"#, r#"{"result":0,"id":1}"#, true),
            (r#"{"method":"a","id":1"#, r#"{"result":0,"id":1}"#, true),
        ] {
            let case = case(&format!("--> {sent}\n<-!"));
            assert_eq!(can_answer(message.as_bytes(), &case), is_reply, "{sent} {message}");
        }
    }
}
