//! Errors, and what is neither a result nor an error.

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
        Scenario::rejects("error-plain", "an error is no result")
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
            .why("Codes outside the reserved range are for applications.")
            .responds(|call| call.with_error(r#"{"code":42,"message":"out of tea"}"#)),
        Scenario::rejects("error-code-zero", "an error with code 0 is an error")
            .section("5.1")
            .why("A client that tests whether the code is true takes it for success.")
            .responds(|call| call.with_error(r#"{"code":0,"message":"out of tea"}"#)),
        Scenario::rejects("error-message-empty", "an error with an empty message is an error")
            .section("5.1")
            .why("A client that tests whether there is a message takes it for success.")
            .responds(|call| call.with_error(r#"{"code":-32000,"message":""}"#)),
        Scenario::rejects("error-id-null", "an error without an id is an error")
            .why("So a server answers what it could not read; there is only one call it can mean.")
            .responds_wrongly(|call| call.with_id("null").with_error(UNREADABLE)),
        Scenario::rejects(
            "error-id-null-alone",
            "an error without an id ends the one call that waits",
        )
        .choice()
        .over(DUPLEX)
        .needs(Precondition::OneInFlight)
        .why("A client that passes it over waits until its time is up.")
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
        Scenario::rejects("neither-result-nor-error", "a Response with neither is no result")
            .why("The result is required on success: undefined is not a value.")
            .responds_wrongly(|call| format!(r#"{{"jsonrpc":"2.0","id":{}}}"#, call.id)),
        Scenario::rejects("result-and-error", "a Response with both is no result")
            .should()
            .why("An error member must not exist if there was no error; so there was one.")
            .responds_wrongly(|call| {
                let error = r#"{"code":-32000,"message":"out of tea"}"#;
                let (id, result) = (&call.id, &call.result);
                format!(r#"{{"jsonrpc":"2.0","result":{result},"error":{error},"id":{id}}}"#)
            }),
        Scenario::rejects("result-null-and-error", "an error beside a null result is an error")
            .should()
            .why("Servers of JSON-RPC 1.0 write it so.")
            .responds_wrongly(|call| {
                let error = r#"{"code":-32000,"message":"out of tea"}"#;
                format!(r#"{{"jsonrpc":"2.0","result":null,"error":{error},"id":{}}}"#, call.id)
            }),
        Scenario::rejects("result-and-error-null", "a result beside a null error is no Response")
            .choice()
            .why("Servers of JSON-RPC 1.0 write it so; in 2.0 both must not be there.")
            .responds_wrongly(|call| {
                let (id, result) = (&call.id, &call.result);
                format!(r#"{{"jsonrpc":"2.0","result":{result},"error":null,"id":{id}}}"#)
            }),
        Scenario::rejects("error-text", "an error that is a String is no result")
            .section("5.1")
            .why("Careless servers put the message where the Error object belongs.")
            .responds_wrongly(|call| call.with_error(r#""out of tea""#)),
        Scenario::rejects("error-without-message", "an error without a message is no result")
            .section("5.1")
            .why("It is malformed, and says all the same that the call failed.")
            .responds_wrongly(|call| call.with_error(r#"{"code":-32000}"#)),
    ]
}

fn versions() -> Vec<Scenario> {
    let why = "Without \"2.0\" it is not a Response of this protocol, and its rules do not hold.";
    vec![
        Scenario::rejects("jsonrpc-missing", "a Response says which version it is")
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
        Scenario::rejects("not-json", "what is no JSON is no result")
            .section("RFC 8259 2")
            .why("Proxies and start scripts say something of their own.")
            .acts(|_, _| lie("upstream not available")),
        Scenario::rejects("not-json-alone", "what is no JSON ends the one call that waits")
            .choice()
            .over(DUPLEX)
            .section("RFC 8259 2")
            .why("A client that passes it over waits until its time is up.")
            .acts(|_, _| vec![ServerAction::Message("upstream not available".to_owned())]),
        Scenario::rejects("answer-cut-short", "half a Response is no result")
            .section("RFC 8259 2")
            .why("A server that ran out of memory or time ends in the middle of its words.")
            .acts(|received, _| {
                let whole = received.ordinary();
                lie(&whole[..whole.rfind("\"id\"").unwrap_or(1)])
            }),
        Scenario::rejects("answer-is-a-scalar", "null is no Response")
            .why("It is JSON, and a client that looks for members in it breaks.")
            .acts(|_, _| lie("null")),
        Scenario::rejects("answer-in-an-array", "an Array does not answer a single call")
            .choice()
            .over(HTTP)
            .needs(Precondition::SingleCall)
            .section("6")
            .why("Only a batch is answered with one.")
            .acts(|received, _| lie(&format!("[{}]", received.ordinary()))),
        Scenario::rejects("answer-empty", "an empty message is no result")
            .section("RFC 8259 2")
            .why("There is nothing in it to read.")
            .acts(|_, _| lie("")),
    ]
}

/// Says this instead of an answer, and leaves after a while.
fn lie(text: &str) -> Vec<ServerAction> {
    ServerAction::then_close(ServerAction::Message(text.to_owned()))
}
