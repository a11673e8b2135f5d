//! Answers that are in order, in every shape that the specification and JSON allow.

use super::super::codec::ClientWire;
use super::super::received::ReceivedCall;
use super::super::scenario::{Scenario, ServerAction};

/// Of a large result.
const LARGE: usize = 1 << 20;
/// How deep a nested result is.
const DEEP: usize = 64;

pub(super) fn all() -> Vec<Scenario> {
    [shapes(), results(), pieces()].concat()
}

fn shapes() -> Vec<Scenario> {
    vec![
        Scenario::accepts("members-reordered", "the members of a Response come in any order")
            .section("RFC 8259 4")
            .why("An Object is unordered; a client that looks for texts at fixed places breaks.")
            .responds(|call| {
                format!(r#"{{"id":{},"result":{},"jsonrpc":"2.0"}}"#, call.id, call.result)
            }),
        Scenario::accepts("white-space", "a Response may hold white space between its tokens")
            .section("RFC 8259 2")
            .why("Servers pretty-print.")
            .acts(|received, wire| {
                vec![ServerAction::Message(received.respond(|call| spaced(call, wire)))]
            }),
        Scenario::accepts("escapes", "Strings mean the same however they are escaped")
            .section("RFC 8259 7")
            .why("A client that compares the bytes of names or ids misses its answer.")
            .responds(escaped),
        Scenario::accepts("member-unknown", "an unknown member of a Response is ignored")
            .choice()
            .why("Servers add their own members, such as a trace or the time that was taken.")
            .responds(|call| {
                let known = call.ordinary();
                format!(r#"{},"meta":{{"id":0,"error":1}}}}"#, known.trim_end_matches('}'))
            }),
    ]
}

fn results() -> Vec<Scenario> {
    let why = "A client that tests whether the result is true takes it for none.";
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
        .why("Only the members of the Response itself say what it is.")
        .responds(|call| call.with_result(r#"{"error":{"code":1,"message":"x"},"id":null}"#)),
        Scenario::accepts("result-text", "a result may hold any character")
            .section("RFC 8259 8.1")
            .why("Lengths are counted in bytes, and lines end at a newline only.")
            .responds(|call| call.with_result("\"é€😀 \u{2028}\u{2029}\u{85} \\u0000\"")),
        Scenario::accepts("result-large-number", "a Number above 2^53 is a result")
            .should()
            .section("RFC 8259 6")
            .why("Rounding it is one thing, to break is another.")
            .responds(|call| call.with_result("18446744073709551616")),
        Scenario::accepts("result-deep", "a result may be nested 64 levels deep")
            .should()
            .section("RFC 8259 9")
            .why("Trees, such as syntax trees and traces, are that deep.")
            .responds(|call| {
                call.with_result(&format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP)))
            }),
        Scenario::accepts("result-large", "a result may have 1 MiB")
            .should()
            .why("Blocks, logs and documents are that large; a client with a small limit breaks.")
            .responds(|call| call.with_result(&format!("\"{}\"", "x".repeat(LARGE)))),
    ]
}

fn pieces() -> Vec<Scenario> {
    vec![
        Scenario::accepts("byte-by-byte", "an answer may come in as many pieces as it has bytes")
            .section("RFC 9293 3.8")
            .why("A stream has no messages: what one read gives is not one answer.")
            .acts(|received, _| {
                let text = received.respond(|call| call.with_result("\"é€😀\""));
                vec![ServerAction::ByteByByte(text)]
            }),
    ]
}

/// White space everywhere it may be; on a line, without a newline.
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
