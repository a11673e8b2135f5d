//! The encoded texts, byte for byte.

use antiphon_core::{
    ErrorObject, Id, Message, Method, Notification, Params, RawJson, Request, Response, encode,
};
use bytes::BytesMut;

fn id(text: &'static str) -> Id {
    Id::from_json(RawJson::parse(text).unwrap()).unwrap()
}

fn text(message: impl Into<Message>) -> String {
    let mut out = BytesMut::new();
    message.into().encode(&mut out);
    String::from_utf8(out.into()).unwrap()
}

/// Section 7, without the spaces.
#[test]
fn the_responses_of_the_specification() {
    let rows = [
        ("1", Ok("19"), r#"{"jsonrpc":"2.0","result":19,"id":1}"#),
        ("2", Ok("-19"), r#"{"jsonrpc":"2.0","result":-19,"id":2}"#),
        (
            "\"1\"",
            Err(ErrorObject::method_not_found()),
            r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"1"}"#,
        ),
        (
            "null",
            Err(ErrorObject::parse_error()),
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#,
        ),
        (
            "null",
            Err(ErrorObject::invalid_request()),
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}"#,
        ),
        ("\"9\"", Ok("[\"hello\", 5]"), r#"{"jsonrpc":"2.0","result":["hello", 5],"id":"9"}"#),
    ];
    for (to, outcome, expected) in rows {
        let outcome = outcome.map(|result| RawJson::parse(result).unwrap());
        let mut out = BytesMut::new();
        encode::response(&id(to), &outcome, &mut out);
        assert_eq!(out, expected);
        assert_eq!(text(Response { id: id(to), outcome }), expected);
    }
}

#[test]
fn the_other_predefined_errors_and_our_own() {
    let rows = [
        (ErrorObject::invalid_params(), r#"{"code":-32602,"message":"Invalid params"}"#),
        (ErrorObject::internal_error(), r#"{"code":-32603,"message":"Internal error"}"#),
        (
            ErrorObject::batch_too_large(2),
            r#"{"code":-32010,"message":"Batch too large","data":"the limit is 2 entries"}"#,
        ),
        (
            ErrorObject::request_too_large(9),
            r#"{"code":-32007,"message":"Request too large","data":"the limit is 9 bytes"}"#,
        ),
        (
            ErrorObject::response_too_large(9),
            r#"{"code":-32008,"message":"Response too large","data":"the limit is 9 bytes"}"#,
        ),
        (
            ErrorObject::new(7, "a \"quoted\"\nline \u{1}").with_data(&(1, [()])),
            r#"{"code":7,"message":"a \"quoted\"\nline \u0001","data":[1,[null]]}"#,
        ),
    ];
    for (error, expected) in rows {
        let mut out = BytesMut::new();
        error.encode(&mut out);
        assert_eq!(out, expected);
    }
    assert_eq!(ErrorObject::server_busy("why").code.0, -32009);
    assert_eq!(ErrorObject::timed_out().code.0, -32012);
}

#[test]
fn calls_are_spliced_from_what_was_written() {
    let method = Method::from_json(RawJson::parse(r#""textDocument\/hover""#).unwrap()).unwrap();
    let params = Some(Params::parse(r#" { "at" : 1.50 } "#).unwrap());
    assert_eq!(
        text(Request {
            id: id("1e3"),
            method: method.clone(),
            params: params.clone(),
            trace: None
        }),
        r#"{"jsonrpc":"2.0","method":"textDocument\/hover","params":{ "at" : 1.50 },"id":1e3}"#
    );
    assert_eq!(
        text(Notification { method, params, trace: None }),
        r#"{"jsonrpc":"2.0","method":"textDocument\/hover","params":{ "at" : 1.50 }}"#
    );
    assert_eq!(
        text(Request { id: Id::Null, method: Method::new("a\"b"), params: None, trace: None }),
        r#"{"jsonrpc":"2.0","method":"a\"b","id":null}"#
    );
}

#[test]
fn encoding_appends() {
    let mut out = BytesMut::from("[");
    Message::from(Notification { method: Method::new("m"), params: None, trace: None })
        .encode(&mut out);
    assert_eq!(out, r#"[{"jsonrpc":"2.0","method":"m"}"#);
}
