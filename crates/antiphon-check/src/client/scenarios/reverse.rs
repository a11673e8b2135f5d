//! The server speaks unasked, where both sides can.

use std::time::Duration;

use super::super::received::{ReceivedCalls, is_text};
use super::super::record::ScenarioRecord;
use super::super::scenario::{DUPLEX, GRACE, Scenario, ServerAction, ServerScript};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"antiphon.note","params":{"unasked":true}}"#;
const ERROR: &str = r#"{"code":-32000,"message":"this is the answer"}"#;
/// The id of what the server asks.
const ID: &str = "antiphon-1";
/// How long a client may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(300);

pub(super) fn all() -> Vec<Scenario> {
    [notifications(), requests()].concat()
}

fn notifications() -> Vec<Scenario> {
    vec![
        Scenario::accepts("notification-passed-over", "a Notification of the server is no answer")
            .should()
            .over(DUPLEX)
            .section("4.1")
            .why("Servers tell news at any time; who does not want it passes it over.")
            .acts(|received, _| {
                vec![
                    ServerAction::Message(NOTE.to_owned()),
                    ServerAction::Wait(MOMENT),
                    ServerAction::Message(received.ordinary()),
                ]
            }),
        Scenario::survives("notification-unanswered", "a Notification is never answered")
            .over(DUPLEX)
            .section("4.1")
            .why("Who answers, even with an error, sends what nobody waits for.")
            .acts(|received, _| {
                vec![
                    ServerAction::Message(NOTE.to_owned()),
                    ServerAction::Listen(MOMENT),
                    ServerAction::Message(received.ordinary()),
                ]
            })
            .record_check(|record| match record.replies.first() {
                None => Ok(()),
                Some(reply) => Err(format!("a Notification was answered with {reply}")),
            }),
    ]
}

fn requests() -> Vec<Scenario> {
    vec![
        Scenario::accepts(
            "request-survived",
            "a Request of the server does not end the client's call",
        )
        .should()
        .over(DUPLEX)
        .section("4")
        .why("Language servers ask their clients before they answer.")
        .acts(|received, _| {
            vec![
                ServerAction::Message(request(&quoted())),
                ServerAction::Wait(MOMENT),
                ServerAction::Message(received.ordinary()),
            ]
        }),
        Scenario::survives(
            "request-answered",
            "a Request of the server is answered, if with an error",
        )
        .choice()
        .over(DUPLEX)
        .section("5")
        .why("A server that waits for the answer waits for ever.")
        .acts(|received, _| {
            vec![
                ServerAction::Message(request(&quoted())),
                ServerAction::Listen(ANSWER),
                ServerAction::Message(received.ordinary()),
            ]
        })
        .record_check(is_answered),
        Scenario::rejects(
            "request-is-no-answer",
            "a Request with the id of a call is not its answer",
        )
        .over(DUPLEX)
        .section("4")
        .why("Each side counts its own ids, so they meet: clangd begins with 0, as others do.")
        .script(ServerScript::HoldThenAct(GRACE, |received, _| {
            let calls = received.iter().flat_map(|received| &received.calls);
            let requests = calls.map(|call| ServerAction::Message(request(&call.id)));
            let own = |received: &ReceivedCalls| received.respond(|call| call.with_error(ERROR));
            let owns = received.iter().map(own).map(ServerAction::Message);
            requests.chain([ServerAction::Wait(MOMENT)]).chain(owns).collect()
        })),
    ]
}

fn quoted() -> String {
    format!("\"{ID}\"")
}

fn request(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"antiphon.unknown","params":[],"id":{id}}}"#)
}

fn is_answered(record: &ScenarioRecord) -> Result<(), String> {
    let is_ours = |id| is_text(id, ID);
    match record.replies.iter().any(|reply| reply.member("id").is_some_and(is_ours)) {
        true => Ok(()),
        false => Err("a Request of the server was not answered".to_owned()),
    }
}
