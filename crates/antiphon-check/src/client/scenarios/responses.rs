//! Valid responses, in every form that the specification and JSON allow.

use super::super::codec::ClientWire;
use super::super::received::ReceivedCall;
use super::super::scenario::{Scenario, ServerAction};

/// The size of a large result.
const LARGE: usize = 1 << 20;
/// The depth of a nested result.
const DEEP: usize = 64;

pub(super) fn all() -> Vec<Scenario> {
    [shapes(), results(), pieces()].concat()
}

fn shapes() -> Vec<Scenario> {
    vec![
        Scenario::accepts("members-reordered", "the members of a Response may have any order")
            .section("RFC 8259 4")
            .why("An Object is unordered. A client that expects a fixed order breaks.")
            .responds(|call| {
                format!(r#"{{"id":{},"result":{},"jsonrpc":"2.0"}}"#, call.id, call.result)
            }),
        Scenario::accepts("white-space", "a Response may hold white space between its tokens")
            .section("RFC 8259 2")
            .why("Some servers pretty-print.")
            .acts(|received, wire| {
                vec![ServerAction::Message(received.respond(|call| spaced(call, wire)))]
            }),
        Scenario::accepts("escapes", "escaped and unescaped Strings are equal")
            .section("RFC 8259 7")
            .why("A client that compares the bytes of names or ids misses its response.")
            .responds(escaped),
        Scenario::accepts("member-unknown", "an unknown member of a Response is ignored")
            .choice()
            .why("Servers add members of their own, such as a trace id or a duration.")
            .responds(|call| {
                let known = call.ordinary();
                format!(r#"{},"meta":{{"id":0,"error":1}}}}"#, known.trim_end_matches('}'))
            }),
    ]
}

fn results() -> Vec<Scenario> {
    let why = "A client that tests the result for truthiness treats it as missing.";
    vec![
        Scenario::accepts("result-null", "null is a result")
            .why(why)
            .responds(|c| c.with_result("null")),
        Scenario::accepts("result-false", "false is a result")
            .why(why)
            .responds(|call| call.with_result("false")),
        Scenario::accepts("result-zero", "0 is a result")
            .why(why)
            .responds(|call| call.with_result("0")),
        Scenario::accepts("result-empty-string", "an empty String is a result")
            .why(why)
            .responds(|call| call.with_result(r#""""#)),
        Scenario::accepts("result-empty-array", "an empty Array is a result")
            .why(why)
            .responds(|call| call.with_result("[]")),
        Scenario::accepts("result-empty-object", "an empty Object is a result")
            .why(why)
            .responds(|call| call.with_result("{}")),
        Scenario::accepts(
            "result-like-an-error",
            "a result may look like an error, or like a Response",
        )
        .why("Only the members of the Response itself decide what it is.")
        .responds(|call| call.with_result(r#"{"error":{"code":1,"message":"x"},"id":null}"#)),
        Scenario::accepts("result-text", "a result may hold any character")
            .section("RFC 8259 8.1")
            .why("Lengths count bytes, and only a newline ends a line.")
            .responds(|call| call.with_result("\"é€😀 \u{2028}\u{2029}\u{85} \\u0000\"")),
        Scenario::accepts("result-large-number", "a Number above 2^53 is a result")
            .should()
            .section("RFC 8259 6")
            .why("A client may round it, but it must not fail.")
            .responds(|call| call.with_result("18446744073709551616")),
        Scenario::accepts("result-deep", "a result may be nested 64 levels deep")
            .should()
            .section("RFC 8259 9")
            .why("Syntax trees and traces are that deep.")
            .responds(|call| {
                call.with_result(&format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP)))
            }),
        Scenario::accepts("result-large", "a result may be 1 MiB large")
            .should()
            .why("Blocks, logs and documents are that large. A client with a small limit breaks.")
            .responds(|call| call.with_result(&format!("\"{}\"", "x".repeat(LARGE)))),
    ]
}

fn pieces() -> Vec<Scenario> {
    vec![
        Scenario::accepts("byte-by-byte", "a response may arrive byte by byte")
            .section("RFC 9293 3.8")
            .why("A stream has no message boundaries: one read is not one response.")
            .acts(|received, _| {
                let text = received.respond(|call| call.with_result("\"é€😀\""));
                vec![ServerAction::ByteByByte(text)]
            }),
    ]
}

/// Returns a response with white space between all tokens; over lines, without a newline.
fn spaced(call: &ReceivedCall, wire: ClientWire) -> String {
    let space = if wire == ClientWire::Line { " \t " } else { "\r\n\t " };
    let tokens = ["{", r#""jsonrpc""#, ":", r#""2.0""#, ",", r#""result""#, ":"];
    let ends = [&call.result, ",", r#""id""#, ":", &call.id, "}"];
    tokens.iter().copied().chain(ends).collect::<Vec<&str>>().join(space)
}

fn escaped(call: &ReceivedCall) -> String {
    let result = r#""\ud83d\ude00 \" \\ \/ \b\f\n\r\t""#;
    let id = match call.id.strip_prefix('"').and_then(|id| id.strip_suffix('"')) {
        Some(id) if id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            let units: String = id.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
            format!("\"{units}\"")
        }
        _ => call.id.clone(),
    };
    format!(r#"{{"\u006asonrpc":"2\u002e0","res\u0075lt":{result},"\u0069d":{id}}}"#)
}
