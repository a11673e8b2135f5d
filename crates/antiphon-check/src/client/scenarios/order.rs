//! Which answer belongs to which call?

use super::super::codec::ClientWire;
use super::super::received::ReceivedCalls;
use super::super::scenario::{
    DUPLEX, GRACE, HTTP, Precondition, Scenario, ServerAction, ServerScript,
};

/// An error that no call has earned.
const ERROR: &str = r#"{"code":-32000,"message":"this is the answer"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"antiphon.note","params":[1]}"#;

pub(super) fn all() -> Vec<Scenario> {
    [in_flight(), batches(), strangers(), ids()].concat()
}

fn in_flight() -> Vec<Scenario> {
    vec![
        Scenario::accepts("answers-reversed", "answers come in any order")
            .over(DUPLEX)
            .needs(Precondition::TwoInFlight)
            .why("The fast call is answered before the slow one; only the id says which is which.")
            .script(ServerScript::HoldThenAct(GRACE, |received, _| tell(received.iter().rev()))),
        Scenario::accepts("answers-joined", "two answers may come in one piece")
            .over(DUPLEX)
            .needs(Precondition::TwoInFlight)
            .section("RFC 9293 3.8")
            .why("A client that takes one read for one answer loses the second.")
            .script(ServerScript::HoldThenAct(GRACE, |received, wire| {
                vec![ServerAction::Send(joined(received, wire))]
            })),
        Scenario::accepts("answers-interleaved", "notifications may come between answers")
            .should()
            .over(DUPLEX)
            .needs(Precondition::TwoInFlight)
            .section("4.1")
            .why("A server that notifies does so at any time.")
            .script(ServerScript::HoldThenAct(GRACE, |received, _| {
                let note = || ServerAction::Message(NOTE.to_owned());
                let answers = tell(received.iter().rev());
                answers.into_iter().flat_map(|answer| [note(), answer, note()]).collect()
            })),
        Scenario::accepts("answered-twice", "a second answer to the same call changes nothing")
            .should()
            .over(DUPLEX)
            .why("A server that sends a message twice must not end a client that has its answer.")
            .acts(|received, _| tell([received, received])),
    ]
}

fn batches() -> Vec<Scenario> {
    vec![
        Scenario::accepts("batch-reordered", "the answers to a batch come in any order")
            .needs(Precondition::Batch)
            .section("6")
            .why("The Server may process a batch as a set of concurrent tasks.")
            .acts(|received, _| {
                let calls = received.calls.iter().rev().cloned().collect();
                tell([&ReceivedCalls { calls, ..received.clone() }])
            }),
        Scenario::rejects(
            "batch-answer-missing",
            "a batch without all its answers has not succeeded",
        )
        .needs(Precondition::Batch)
        .section("6")
        .why("A call whose answer is missing must not wait for ever, or pass for answered.")
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
        Scenario::rejects("batch-one-error", "one error may answer a whole batch")
            .needs(Precondition::Batch)
            .section("6")
            .why("So a server refuses a batch that it cannot read, or does not want.")
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

fn strangers() -> Vec<Scenario> {
    vec![
        Scenario::rejects("answer-of-another", "an answer with another id is not the answer")
            .over(DUPLEX)
            .why("The first answer has another id; the call itself gets an error behind it.")
            .script(ServerScript::HoldThenAct(GRACE, |received, _| {
                let stranger = |received: &ReceivedCalls| {
                    received.respond(|call| call.with_id(&another(&call.id)).ordinary())
                };
                let own =
                    |received: &ReceivedCalls| received.respond(|call| call.with_error(ERROR));
                let strangers = received.iter().map(stranger).map(ServerAction::Message);
                // Who takes a stranger's answer asks on, and gets another stranger's.
                let owns = received.iter().map(own).map(ServerAction::Deferred);
                strangers.chain([ServerAction::Wait(GRACE)]).chain(owns).collect()
            })),
        Scenario::accepts("stranger-first", "an answer that nobody waits for is passed over")
            .should()
            .over(DUPLEX)
            .why("It may be late, for a call that was given up; the next answer is the right one.")
            .acts(|received, _| {
                let stranger =
                    received.respond(|call| call.with_id(&another(&call.id)).with_error(ERROR));
                vec![
                    ServerAction::Message(stranger),
                    ServerAction::Wait(GRACE),
                    ServerAction::Message(received.ordinary()),
                ]
            }),
        Scenario::rejects("wrong-id", "an answer with another id is not the answer")
            .should()
            .over(HTTP)
            .why("A cache or a proxy that mixes answers up gives somebody else's.")
            .responds(|call| call.with_id(&another(&call.id)).ordinary()),
    ]
}

fn ids() -> Vec<Scenario> {
    vec![
        Scenario::rejects("id-of-another-type", "1 and \"1\" are two ids")
            .should()
            .why("The id must be the same value; a client that converts it finds false answers.")
            .responds_wrongly(|call| call.with_id(&retyped(&call.id)).ordinary()),
        Scenario::rejects("result-id-null", "a result for nobody is not the answer")
            .should()
            .why("Only an error may have a null id, where the id could not be read.")
            .responds_wrongly(|call| call.with_id("null").ordinary()),
        Scenario::rejects("id-missing", "a Response without an id is not the answer")
            .should()
            .why("The member is required.")
            .responds_wrongly(|call| format!(r#"{{"jsonrpc":"2.0","result":{}}}"#, call.result)),
    ]
}

fn tell<'a>(received: impl IntoIterator<Item = &'a ReceivedCalls>) -> Vec<ServerAction> {
    received.into_iter().map(|received| ServerAction::Message(received.ordinary())).collect()
}

fn joined(received: &[ReceivedCalls], wire: ClientWire) -> Vec<u8> {
    received.iter().flat_map(|received| wire.framed(&received.ordinary())).collect()
}

/// The text of an id that is not this one.
fn another(id: &str) -> String {
    match id.strip_prefix('"') {
        Some(rest) => format!("\"other {rest}"),
        None => id.parse::<i64>().map_or("-1".to_owned(), |id| id.wrapping_add(1000).to_string()),
    }
}

/// The text of an id that looks like this one, and has another type.
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
