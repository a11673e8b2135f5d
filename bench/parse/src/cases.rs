//! Messages that are easy to decode wrongly, and the correct results.

use serde_json::{Value, json};

use crate::DECODERS;
use crate::verdict::Verdict;
use crate::verdict::Verdict::{InvalidRequest, ParseError};

pub(crate) struct Case {
    name: &'static str,
    message: Vec<u8>,
    right: Verdict,
}

impl Case {
    fn new(name: &'static str, message: impl Into<Vec<u8>>, right: Verdict) -> Self {
        Self { name, message: message.into(), right }
    }

    /// The result of every decoder.
    pub(crate) fn judged(&self) -> Value {
        let verdicts: Vec<_> =
            DECODERS.iter().map(|decoder| (decoder.judge)(&self.message)).collect();
        let right: Vec<_> = verdicts.iter().map(|verdict| *verdict == self.right).collect();
        let verdicts: Vec<_> = verdicts.iter().map(Verdict::to_string).collect();
        json!({
            "case": self.name, "expected": self.right.to_string(),
            "verdicts": verdicts, "right": right,
        })
    }
}

pub(crate) fn all() -> Vec<Case> {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let mut not_utf8 = params(r#"["?"]"#).into_bytes();
    let place = not_utf8.iter().position(|byte| *byte == b'?').expect("it was put there");
    not_utf8[place] = 0xff;
    vec![
        Case::new("a bad escape: `\"\\u12G4\"`", params(r#"["\u12G4"]"#), ParseError),
        Case::new("an escape of half a surrogate pair", params(r#"["\ud800"]"#), id("1")),
        Case::new("a string that is not UTF-8", not_utf8, ParseError),
        Case::new("a raw control character in a string", params("[\"\u{1}\"]"), ParseError),
        Case::new("a number with a leading zero", params("[01]"), ParseError),
        Case::new("10,000 brackets deep", params(&deep), ParseError),
        Case::new("text after the message", params("[1]") + "x", ParseError),
        Case::new(
            "an id that needs more than 64 bits",
            with_id("18446744073709551616"),
            id("18446744073709551616"),
        ),
        Case::new("an id with a trailing zero", with_id("1.50"), id("1.50")),
        Case::new("an id that is null", with_id("null"), id("null")),
        Case::new("no id", r#"{"jsonrpc":"2.0","method":"m"}"#, Verdict::Notification),
        Case::new(
            "a member that is there twice",
            r#"{"jsonrpc":"2.0","method":"a","method":"b","id":1}"#,
            InvalidRequest,
        ),
        Case::new("an Array in place of a Request", r#"[["2.0","m",[1],1]]"#, InvalidRequest),
        Case::new(
            "a method that is a Number",
            r#"{"jsonrpc":"2.0","method":1,"id":1}"#,
            InvalidRequest,
        ),
        Case::new("the same, and broken off", r#"{"jsonrpc":"2.0","method":1,"id":1"#, ParseError),
        Case::new("params that are a String", params(r#""x""#), InvalidRequest),
    ]
}

fn params(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params},"id":1}}"#)
}

fn with_id(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"m","id":{id}}}"#)
}

fn id(id: &str) -> Verdict {
    Verdict::Request { id: id.to_owned() }
}
