//! Errors, and responses that are neither a result nor an error.

use super::super::scenario::{
    DUPLEX, GRACE, HTTP, Precondition, Scenario, ServerAction, ServerScript,
};

const UNREADABLE: &str = r#"{"code":-32700,"message":"Parse error"}"#;

pub(super) fn all() -> Vec<Scenario> {
    [errors(), malformed(), versions(), texts()].concat()
}

fn errors() -> Vec<Scenario> {
    let why = "A caller must learn that its call failed.";
    vec![
        Scenario::rejects("error-plain", "an error is not a result")
            .section("5.1")
            .why(why)
            .responds(|call| call.with_error(r#"{"code":-32601,"message":"Method not found"}"#)),
        Scenario::rejects("error-data", "an error may have data").section("5.1").why(why).responds(
            |call| {
                call.with_error(r#"{"code":-32602,"message":"Invalid params","data":{"at":[0,1]}}"#)
            },
        ),
        Scenario::rejects("error-data-null", "the data of an error may be null")
            .section("5.1")
            .why(why)
            .responds(|call| call.with_error(r#"{"code":-32603,"message":"x","data":null}"#)),
        Scenario::rejects("error-of-the-server", "-32000 to -32099 are errors of the server")
            .section("5.1")
            .why(why)
            .responds(|call| call.with_error(r#"{"code":-32050,"message":"out of tea"}"#)),
        Scenario::rejects("error-of-the-application", "every other code is an error too")
            .section("5.1")
            .why("Codes outside the reserved range belong to applications.")
            .responds(|call| call.with_error(r#"{"code":42,"message":"out of tea"}"#)),
        Scenario::rejects("error-code-zero", "an error with code 0 is an error")
            .section("5.1")
            .why("A client that tests the code for truthiness treats it as a success.")
            .responds(|call| call.with_error(r#"{"code":0,"message":"out of tea"}"#)),
        Scenario::rejects("error-message-empty", "an error with an empty message is an error")
            .section("5.1")
            .why("A client that tests the message for truthiness treats it as a success.")
            .responds(|call| call.with_error(r#"{"code":-32000,"message":""}"#)),
        Scenario::rejects("error-id-null", "an error with a null id is an error")
            .why("A server responds this way to a message that it could not read. Only one call is in flight.")
            .responds_wrongly(|call| call.with_id("null").with_error(UNREADABLE)),
        Scenario::rejects(
            "error-id-null-alone",
            "an error with a null id ends the only call in flight",
        )
        .choice()
        .over(DUPLEX)
        .needs(Precondition::OneInFlight)
        .why("A client that ignores it waits until its timeout.")
        .script(ServerScript::HoldThenAct(GRACE, |received, _| match received {
            [one] => {
                vec![ServerAction::Message(one.calls[0].with_id("null").with_error(UNREADABLE))]
            }
            several => {
                several.iter().map(|received| ServerAction::Message(received.ordinary())).collect()
            }
        })),
    ]
}

fn malformed() -> Vec<Scenario> {
    vec![
        Scenario::rejects(
            "neither-result-nor-error",
            "a Response without result and error is not a result",
        )
        .why("The result is required on success; a missing member is not a value.")
        .responds_wrongly(|call| format!(r#"{{"jsonrpc":"2.0","id":{}}}"#, call.id)),
        Scenario::rejects(
            "result-and-error",
            "a Response with a result and an error is not a result",
        )
        .should()
        .why("The member `error` exists only if there was an error.")
        .responds_wrongly(|call| {
            let error = r#"{"code":-32000,"message":"out of tea"}"#;
            let (id, result) = (&call.id, &call.result);
            format!(r#"{{"jsonrpc":"2.0","result":{result},"error":{error},"id":{id}}}"#)
        }),
        Scenario::rejects("result-null-and-error", "an error with a null result is an error")
            .should()
            .why("JSON-RPC 1.0 servers send this.")
            .responds_wrongly(|call| {
                let error = r#"{"code":-32000,"message":"out of tea"}"#;
                format!(r#"{{"jsonrpc":"2.0","result":null,"error":{error},"id":{}}}"#, call.id)
            }),
        Scenario::rejects(
            "result-and-error-null",
            "a result with a null error is not a valid Response",
        )
        .choice()
        .why("JSON-RPC 1.0 servers send this. In 2.0, a Response must not have both members.")
        .responds_wrongly(|call| {
            let (id, result) = (&call.id, &call.result);
            format!(r#"{{"jsonrpc":"2.0","result":{result},"error":null,"id":{id}}}"#)
        }),
        Scenario::rejects("error-text", "an error that is a String is not a result")
            .section("5.1")
            .why("Some servers send a message instead of an Error object.")
            .responds_wrongly(|call| call.with_error(r#""out of tea""#)),
        Scenario::rejects("error-without-message", "an error without a message is not a result")
            .section("5.1")
            .why("The Error object is malformed, but the call has failed.")
            .responds_wrongly(|call| call.with_error(r#"{"code":-32000}"#)),
    ]
}

fn versions() -> Vec<Scenario> {
    let why = "Without \"2.0\" it is not a Response of this protocol, and its rules do not hold.";
    vec![
        Scenario::rejects("jsonrpc-missing", "a Response has the member `jsonrpc`")
            .should()
            .why(why)
            .responds_wrongly(|call| format!(r#"{{"result":{},"id":{}}}"#, call.result, call.id)),
        Scenario::rejects("jsonrpc-wrong", "\"1.0\" is not \"2.0\"")
            .should()
            .why(why)
            .responds_wrongly(|call| {
                format!(r#"{{"jsonrpc":"1.0","result":{},"id":{}}}"#, call.result, call.id)
            }),
        Scenario::rejects("jsonrpc-number", "2.0 is not \"2.0\"")
            .choice()
            .why(why)
            .responds_wrongly(|call| {
                format!(r#"{{"jsonrpc":2.0,"result":{},"id":{}}}"#, call.result, call.id)
            }),
    ]
}

fn texts() -> Vec<Scenario> {
    vec![
        Scenario::rejects("not-json", "a text that is not JSON is not a result")
            .section("RFC 8259 2")
            .why("Proxies and start scripts send or print other text.")
            .acts(|_, _| lie("upstream not available")),
        Scenario::rejects("not-json-alone", "a text that is not JSON ends the only call in flight")
            .choice()
            .over(DUPLEX)
            .section("RFC 8259 2")
            .why("A client that ignores it waits until its timeout.")
            .acts(|_, _| vec![ServerAction::Message("upstream not available".to_owned())]),
        Scenario::rejects("answer-cut-short", "a truncated Response is not a result")
            .section("RFC 8259 2")
            .why("A server that runs out of memory or time may send half a response.")
            .acts(|received, _| {
                let whole = received.ordinary();
                lie(&whole[..whole.rfind("\"id\"").unwrap_or(1)])
            }),
        Scenario::rejects("answer-is-a-scalar", "null is not a Response")
            .why("It is valid JSON, but a client that looks for members breaks.")
            .acts(|_, _| lie("null")),
        Scenario::rejects("answer-in-an-array", "an Array is not the response to a single call")
            .choice()
            .over(HTTP)
            .needs(Precondition::SingleCall)
            .section("6")
            .why("Only the response to a batch is an Array.")
            .acts(|received, _| lie(&format!("[{}]", received.ordinary()))),
        Scenario::rejects("answer-empty", "an empty message is not a result")
            .section("RFC 8259 2")
            .why("It is not JSON.")
            .acts(|_, _| lie("")),
    ]
}

/// Sends this instead of a response, and closes the connection after a delay.
fn lie(text: &str) -> Vec<ServerAction> {
    ServerAction::then_close(ServerAction::Message(text.to_owned()))
}
