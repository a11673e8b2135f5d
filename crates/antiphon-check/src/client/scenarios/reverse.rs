//! Notifications and Requests of the server.

use std::time::Duration;

use super::super::received::{ReceivedCalls, is_text};
use super::super::record::ScenarioRecord;
use super::super::scenario::{DUPLEX, GRACE, Scenario, ServerAction, ServerScript};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"antiphon.note","params":{"unasked":true}}"#;
const ERROR: &str = r#"{"code":-32000,"message":"this is the response"}"#;
/// The id of the server's Request.
const ID: &str = "antiphon-1";
/// The time for a client to respond.
const ANSWER: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(300);

pub(super) fn all() -> Vec<Scenario> {
    [notifications(), requests()].concat()
}

fn notifications() -> Vec<Scenario> {
    vec![
        Scenario::accepts("notification-passed-over", "a Notification of the server is not a response")
            .should()
            .over(DUPLEX)
            .section("4.1")
            .why("Servers may send Notifications at any time. A client ignores those that it does not use.")
            .acts(|received, _| {
                vec![
                    ServerAction::Message(NOTE.to_owned()),
                    ServerAction::Wait(MOMENT),
                    ServerAction::Message(received.ordinary()),
                ]
            }),
        Scenario::survives("notification-unanswered", "a Notification gets no response")
            .over(DUPLEX)
            .section("4.1")
            .why("The server does not expect a response, not even an error.")
            .acts(|received, _| {
                vec![
                    ServerAction::Message(NOTE.to_owned()),
                    ServerAction::Listen(MOMENT),
                    ServerAction::Message(received.ordinary()),
                ]
            })
            .record_check(|record| match record.replies.first() {
                None => Ok(()),
                Some(reply) => Err(format!("the client responded to a Notification with {reply}")),
            }),
    ]
}

fn requests() -> Vec<Scenario> {
    vec![
        Scenario::accepts(
            "request-survived",
            "a Request of the server does not end a call of the client",
        )
        .should()
        .over(DUPLEX)
        .section("4")
        .why("Language servers send Requests to their clients before they respond.")
        .acts(|received, _| {
            vec![
                ServerAction::Message(request(&quoted())),
                ServerAction::Wait(MOMENT),
                ServerAction::Message(received.ordinary()),
            ]
        }),
        Scenario::survives(
            "request-answered",
            "a Request of the server gets a response, at least an error",
        )
        .choice()
        .over(DUPLEX)
        .section("5")
        .why("Without a response the server waits forever.")
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
            "a Request with the id of a call is not its response",
        )
        .over(DUPLEX)
        .section("4")
        .why("Each side numbers its own ids, so they collide: clangd starts at 0, like many clients.")
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
        false => Err("the client did not respond to a Request of the server".to_owned()),
    }
}
