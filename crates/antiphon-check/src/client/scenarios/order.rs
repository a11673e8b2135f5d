//! The matching of responses and calls: order, batches and ids.

use super::super::codec::ClientWire;
use super::super::received::ReceivedCalls;
use super::super::scenario::{
    DUPLEX, GRACE, HTTP, Precondition, Scenario, ServerAction, ServerScript,
};

/// The error of wrong responses.
const ERROR: &str = r#"{"code":-32000,"message":"this is the response"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"antiphon.note","params":[1]}"#;

pub(super) fn all() -> Vec<Scenario> {
    [in_flight(), batches(), foreign_responses(), ids()].concat()
}

fn in_flight() -> Vec<Scenario> {
    vec![
        Scenario::accepts("answers-reversed", "responses arrive in any order")
            .over(DUPLEX)
            .needs(Precondition::TwoInFlight)
            .why("A fast call may finish before a slow one. Only the id connects a response with its call.")
            .script(ServerScript::HoldThenAct(GRACE, |received, _| tell(received.iter().rev()))),
        Scenario::accepts("answers-joined", "two responses may arrive in one read")
            .over(DUPLEX)
            .needs(Precondition::TwoInFlight)
            .section("RFC 9293 3.8")
            .why("A client that treats one read as one response loses the second.")
            .script(ServerScript::HoldThenAct(GRACE, |received, wire| {
                vec![ServerAction::Send(joined(received, wire))]
            })),
        Scenario::accepts("answers-interleaved", "notifications may arrive between responses")
            .should()
            .over(DUPLEX)
            .needs(Precondition::TwoInFlight)
            .section("4.1")
            .why("A server may send notifications at any time.")
            .script(ServerScript::HoldThenAct(GRACE, |received, _| {
                let note = || ServerAction::Message(NOTE.to_owned());
                let answers = tell(received.iter().rev());
                answers.into_iter().flat_map(|answer| [note(), answer, note()]).collect()
            })),
        Scenario::accepts("answered-twice", "a second response to the same call is ignored")
            .should()
            .over(DUPLEX)
            .why("A duplicate message must not break a client that already has its response.")
            .acts(|received, _| tell([received, received])),
    ]
}

fn batches() -> Vec<Scenario> {
    vec![
        Scenario::accepts("batch-reordered", "the responses to a batch arrive in any order")
            .needs(Precondition::Batch)
            .section("6")
            .why("The server may process a batch as a set of concurrent tasks.")
            .acts(|received, _| {
                let calls = received.calls.iter().rev().cloned().collect();
                tell([&ReceivedCalls { calls, ..received.clone() }])
            }),
        Scenario::rejects("batch-answer-missing", "a batch with a missing response has failed")
            .needs(Precondition::Batch)
            .section("6")
            .why("A call without a response must neither hang nor count as a success.")
            .acts(|received, _| match received.is_batch {
                false => tell([received]),
                true => {
                    let calls = received.calls.iter().skip(1).cloned().collect();
                    let some = ReceivedCalls { calls, ..received.clone() };
                    vec![
                        ServerAction::Message(some.ordinary()),
                        ServerAction::Wait(GRACE),
                        ServerAction::Close,
                    ]
                }
            }),
        Scenario::rejects("batch-one-error", "a single error may be the response to a whole batch")
            .needs(Precondition::Batch)
            .section("6")
            .why("A server rejects a batch this way if it cannot read it or does not allow it.")
            .acts(|received, _| match received.is_batch {
                false => tell([received]),
                true => {
                    let error = received.calls[0].with_id("null").with_error(ERROR);
                    vec![
                        ServerAction::Message(error),
                        ServerAction::Wait(GRACE),
                        ServerAction::Close,
                    ]
                }
            }),
    ]
}

fn foreign_responses() -> Vec<Scenario> {
    vec![
        Scenario::rejects(
            "answer-of-another",
            "a response with another id belongs to another call",
        )
        .over(DUPLEX)
        .why("The first response has another id. The call itself then gets an error.")
        .script(ServerScript::HoldThenAct(GRACE, |received, _| {
            let foreign = |received: &ReceivedCalls| {
                received.respond(|call| call.with_id(&another(&call.id)).ordinary())
            };
            let own = |received: &ReceivedCalls| received.respond(|call| call.with_error(ERROR));
            let foreigns = received.iter().map(foreign).map(ServerAction::Message);
            // A client that accepts the foreign response makes its next call, and gets another one.
            let owns = received.iter().map(own).map(ServerAction::Deferred);
            foreigns.chain([ServerAction::Wait(GRACE)]).chain(owns).collect()
        })),
        Scenario::accepts("stranger-first", "a response without a waiting call is ignored")
            .should()
            .over(DUPLEX)
            .why("It may belong to a call that timed out. The next response is the right one.")
            .acts(|received, _| {
                let foreign =
                    received.respond(|call| call.with_id(&another(&call.id)).with_error(ERROR));
                vec![
                    ServerAction::Message(foreign),
                    ServerAction::Wait(GRACE),
                    ServerAction::Message(received.ordinary()),
                ]
            }),
        Scenario::rejects("wrong-id", "a response with another id belongs to another call")
            .should()
            .over(HTTP)
            .why("A cache or a proxy may mix up responses.")
            .responds(|call| call.with_id(&another(&call.id)).ordinary()),
    ]
}

fn ids() -> Vec<Scenario> {
    vec![
        Scenario::rejects("id-of-another-type", "1 and \"1\" are different ids")
            .should()
            .why(
                "The id must be the same value. A client that converts it accepts wrong responses.",
            )
            .responds_wrongly(|call| call.with_id(&retyped(&call.id)).ordinary()),
        Scenario::rejects("result-id-null", "a result with a null id is invalid")
            .should()
            .why("Only an error may have a null id, if the server could not read the id.")
            .responds_wrongly(|call| call.with_id("null").ordinary()),
        Scenario::rejects("id-missing", "a Response without an id is invalid")
            .should()
            .why("The id is a required member.")
            .responds_wrongly(|call| format!(r#"{{"jsonrpc":"2.0","result":{}}}"#, call.result)),
    ]
}

fn tell<'a>(received: impl IntoIterator<Item = &'a ReceivedCalls>) -> Vec<ServerAction> {
    received.into_iter().map(|received| ServerAction::Message(received.ordinary())).collect()
}

fn joined(received: &[ReceivedCalls], wire: ClientWire) -> Vec<u8> {
    received.iter().flat_map(|received| wire.framed(&received.ordinary())).collect()
}

/// Returns a different id.
fn another(id: &str) -> String {
    match id.strip_prefix('"') {
        Some(rest) => format!("\"other {rest}"),
        None => id.parse::<i64>().map_or("-1".to_owned(), |id| id.wrapping_add(1000).to_string()),
    }
}

/// Returns an id that looks the same but has another type.
fn retyped(id: &str) -> String {
    match id.strip_prefix('"').and_then(|id| id.strip_suffix('"')) {
        None => format!("\"{id}\""),
        Some(digits) if digits.parse::<u32>().is_ok_and(|n| n.to_string() == digits) => {
            digits.to_owned()
        }
        Some(_) => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ids_are_others() {
        for (id, other) in [("1", "1001"), ("\"a\"", "\"other a\""), ("1.5", "-1"), ("null", "-1")]
        {
            assert_eq!(another(id), other);
        }
        for (id, other) in [("1", "\"1\""), ("\"1\"", "1"), ("\"01\"", "0"), ("\"a\"", "0")] {
            assert_eq!(retyped(id), other);
        }
    }
}
